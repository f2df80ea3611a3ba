//! What suspension came to.

use miserly_core::{Span, work};

use crate::finished::Finished;

/// Suspensions, over all jobs of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suspended {
    /// Suspensions, all together.
    pub count: u64,
    /// Jobs that were suspended at least once.
    pub jobs: u64,
    /// Suspensions of one job, at most.
    pub most: u64,
    /// For how long jobs were suspended, all together, ticks.
    pub time: u128,
    /// For how long they were written out and read back, all together, ticks.
    pub overhead: u128,
    /// What they held meanwhile, processor-ticks.
    pub held: u128,
}

impl Suspended {
    pub(super) fn add(&mut self, job: &Finished) {
        let of = &job.interruptions;
        let (count, ticks) = (u64::from(of.count), |span: Span| u128::from(span.ticks().unsigned_abs()));
        self.count += count;
        self.jobs += u64::from(count > 0);
        self.most = self.most.max(count);
        self.time += ticks(of.suspended);
        self.overhead += ticks(of.overhead);
        self.held += work(of.overhead, job.request.procs());
    }

    /// Adds all that another one holds.
    pub fn merge(&mut self, other: &Suspended) {
        self.count += other.count;
        self.jobs += other.jobs;
        self.most = self.most.max(other.most);
        self.time += other.time;
        self.overhead += other.overhead;
        self.held += other.held;
    }
}
