//! A walk through the jobs in their order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Moment;
use super::chunk::Member;
use crate::shared::order::{Facts, Key};
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
    pub(super) jobs: Vec<Candidate>,
    /// The job whose key was computed last.
    computed: Option<(Waiting, Key)>,
}

/// A job of a walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// The job. Its key is that of the order of arrival.
    pub(super) waiting: Waiting,
    /// Whether the next candidate is alike, and comes next among those that are.
    pub(super) leads: bool,
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
    /// Drops the other steps.
    pub(super) fn retain(&mut self, keep: impl Fn(&Walk, Step) -> bool) {
        let mut steps = std::mem::take(&mut self.steps);
        steps.retain(|Reverse((_, step))| keep(self, *step));
        self.steps = steps;
    }

    /// Adds jobs of a chunk, each with a bound on its rank, in the order of their places.
    ///
    /// Jobs that are alike are compared one after the other, with one computed key.
    pub(super) fn compare<'a>(&mut self, jobs: impl Iterator<Item = (i64, &'a Member)>) {
        let mut last: Option<&Member> = None;
        for (least_rank, member) in jobs {
            let index = self.jobs.len();
            if last.is_some_and(|last| member.is_alike(last)) {
                self.jobs[index - 1].leads = true;
            } else {
                self.steps.push(Reverse((least_rank, Step::Compare(index))));
            }
            self.jobs.push(Candidate { waiting: member.waiting, leads: false });
            last = Some(member);
        }
    }

    /// Computes the key of a job, and makes it ready.
    pub(super) fn ready(&mut self, at: &Moment<'_>, index: usize, after: Option<&Key>) {
        let waiting = self.jobs[index].waiting;
        let key = match &self.computed {
            Some((other, key)) if are_alike(at, &waiting, other) => waiting.key.with_primary_of(key),
            _ => at.key(waiting.job),
        };
        self.computed = Some((waiting, key));
        self.ready_behind(index, key, after);
    }

    /// Makes a job with this key ready, or the first one behind `after` that is alike.
    fn ready_behind(&mut self, mut index: usize, mut key: Key, after: Option<&Key>) {
        while Some(&key) <= after {
            if !self.jobs[index].leads {
                return;
            }
            index += 1;
            key = self.jobs[index].waiting.key.with_primary_of(&key);
        }
        self.ready.push(Reverse((key, index)));
    }

    /// Returns the first job that is ready, if its rank is below that of all steps.
    pub(super) fn first_ready(&self) -> Option<Waiting> {
        let Reverse((key, index)) = self.ready.peek()?;
        let least = self.steps.peek().map_or(i64::MAX, |Reverse((rank, _))| *rank);
        let is_first = key.primary() < least || self.steps.is_empty();
        is_first.then(|| Waiting { key: *key, ..self.jobs[*index].waiting })
    }

    /// Removes the first job that is ready, and those that are alike up to `after`. `fits`: whether the others fit.
    pub(super) fn pass_ready(&mut self, after: Option<&Key>, fits: bool) {
        if let Some(Reverse((key, index))) = self.ready.pop()
            && fits
        {
            self.ready_behind(index, key, after);
        }
    }
}

/// Returns whether two jobs of the ledger have the same rank at any time.
fn are_alike(at: &Moment<'_>, one: &Waiting, other: &Waiting) -> bool {
    if (one.procs, one.span) != (other.procs, other.span) {
        return false;
    }
    let Some((one, other)) = at.ledger.get(one.job).zip(at.ledger.get(other.job)) else { return false };
    one.request.submit == other.request.submit && Facts::new(one).are_alike(&Facts::new(other))
}
