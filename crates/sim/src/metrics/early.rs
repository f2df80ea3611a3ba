//! What jobs did ahead of their starts, on what was idle (Miser §3.2).

use miserly_core::{Span, work};

use crate::finished::Finished;

/// What was done ahead of starts, over all jobs of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Early {
    /// Jobs that ran ahead of their starts.
    pub jobs: u64,
    /// Jobs among them that were done before.
    pub done: u64,
    /// The work that was done so, processor-ticks.
    pub work: u128,
    /// For how long the jobs ran so, all together.
    pub ran: Span,
    /// All work of all jobs, processor-ticks.
    all: u128,
}

impl Early {
    pub(super) fn add(&mut self, job: &Finished) {
        self.all += work(job.runtime, job.request.procs());
        if let Some(ahead) = job.opportunistic {
            self.jobs += 1;
            self.done += u64::from(job.reason.is_none());
            self.work += ahead.work;
            self.ran += ahead.ran;
        }
    }

    /// The share of all work that was done ahead of starts, 0 to 1; `None` where there was no work.
    pub fn share(&self) -> Option<f64> {
        (self.all > 0).then(|| self.work as f64 / self.all as f64)
    }

    /// Adds all that another one holds.
    pub fn merge(&mut self, other: &Early) {
        self.jobs += other.jobs;
        self.done += other.done;
        self.work += other.work;
        self.ran += other.ran;
        self.all += other.all;
    }
}
