//! The jobs of a chart, and what is known of their machine.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;

use crate::{Clock, Job};

/// The jobs of a machine at an instant.
#[derive(Clone, Debug)]
pub struct Schedule<'a> {
    /// The instant.
    pub now: i64,
    /// How instants are written.
    pub clock: Clock,
    /// Whether the jobs change as time goes by.
    pub live: bool,
    /// The user for whom they are shown, by number; `None` if jobs have no owner here.
    pub uid: Option<u32>,
    /// The pools.
    pub pools: Vec<Pool>,
    /// The unfinished jobs, and those that ended, as far as they are known.
    pub jobs: Cow<'a, [Arc<Job>]>,
    /// The waiting jobs of the first pool, ascending, if more jobs wait than there are here.
    pub queue: Option<Vec<QueueStep>>,
}

/// A pool of processors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pool {
    /// The name of the queue or of the policy.
    pub name: String,
    /// The processors.
    pub cpus: u64,
    /// The slots of gang scheduling, each with all processors; processor p of slot s has the number s x `cpus` + p.
    pub slots: u32,
    /// The first processor of each host, with its name; empty for a single host.
    pub hosts: Vec<(u32, String)>,
    /// Whether its policy promises starts.
    pub promises: bool,
}

/// The waiting jobs from an instant until the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct QueueStep {
    /// The instant in milliseconds.
    pub at: i64,
    /// The number of waiting jobs.
    pub jobs: i64,
    /// The processors that these jobs request.
    pub procs: i64,
}

impl Pool {
    /// Returns a pool of one host without slots.
    pub fn new(name: &str, cpus: u64) -> Pool {
        Pool { name: name.to_owned(), cpus, slots: 1, ..Pool::default() }
    }
}

impl Schedule<'_> {
    /// Returns whether a job is of the user for whom this is shown.
    pub(crate) fn is_own(&self, job: &Job) -> bool {
        self.uid.is_some() && job.uid == self.uid
    }

    /// Returns whether the pools are runs of one log, whose jobs have the same numbers in each.
    pub fn is_of_runs(&self) -> bool {
        !self.live && self.uid.is_none()
    }

    /// Returns the schedule of a test: these jobs in one pool, at the start of a log.
    #[cfg(test)]
    pub(crate) fn of_jobs(cpus: u64, jobs: impl IntoIterator<Item = Job>) -> Schedule<'static> {
        Schedule {
            now: 0,
            clock: Clock::SinceStart,
            live: true,
            uid: None,
            pools: vec![Pool::new("", cpus)],
            jobs: jobs.into_iter().map(Arc::new).collect(),
            queue: None,
        }
    }
}
