//! A walk through the jobs in their order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::shared::order::Key;
use crate::shared::queue::Waiting;

/// A walk through the jobs in their order, at one instant.
///
/// Jobs may be removed during a walk, but not inserted. The room for jobs may become smaller, but not larger.
#[derive(Debug, Default)]
pub struct Walk {
    pub(super) has_begun: bool,
    /// What is left, by the least possible rank.
    pub(super) steps: BinaryHeap<Reverse<(i64, Step)>>,
    /// The jobs that may be next, each with its key.
    pub(super) ready: BinaryHeap<Reverse<(Key, usize)>>,
    pub(super) jobs: Vec<Waiting>,
}

/// A step of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// Open this chunk.
    Open(usize),
    /// Open this chunk again, for the jobs with bounds above those that were found before.
    OpenAgain(usize),
    /// Compute the key of this job.
    Compare(usize),
}

impl Walk {
    /// Adds a job with a bound on its rank.
    pub(super) fn compare(&mut self, least_rank: i64, job: Waiting) {
        self.steps.push(Reverse((least_rank, Step::Compare(self.jobs.len()))));
        self.jobs.push(job);
    }
}
