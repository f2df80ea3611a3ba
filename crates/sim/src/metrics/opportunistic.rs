//! The opportunistic work of jobs before their starts, on idle resources (Miser §3.2).

use miserly_core::{Span, work};

use crate::finished::Finished;

/// The opportunistic work over all jobs of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpportunisticTotals {
    /// Jobs that ran before their starts.
    pub jobs: u64,
    /// Jobs among them that ended before their starts.
    pub done: u64,
    /// The opportunistic work, processor-ticks.
    pub work: u128,
    /// The total time that jobs ran opportunistically.
    pub ran: Span,
    /// All work of all jobs, processor-ticks.
    all: u128,
}

impl OpportunisticTotals {
    pub(super) fn add(&mut self, job: &Finished) {
        self.all += work(job.runtime, job.request.procs());
        if let Some(ahead) = job.opportunistic {
            self.jobs += 1;
            self.done += u64::from(job.reason.is_none());
            self.work += ahead.work;
            self.ran += ahead.ran;
        }
    }

    /// Returns the share of all work that was opportunistic, 0 to 1, or `None` without work.
    pub fn share(&self) -> Option<f64> {
        (self.all > 0).then(|| self.work as f64 / self.all as f64)
    }

    /// Adds the contents of another accumulator.
    pub fn merge(&mut self, other: &OpportunisticTotals) {
        self.jobs += other.jobs;
        self.done += other.done;
        self.work += other.work;
        self.ran += other.ran;
        self.all += other.all;
    }
}
