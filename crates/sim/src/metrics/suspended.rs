//! The number and the cost of suspensions.

use miserly_core::{Span, work};

use crate::finished::Finished;

/// Suspensions, over all jobs of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suspended {
    /// The total number of suspensions.
    pub count: u64,
    /// Jobs that were suspended at least once.
    pub jobs: u64,
    /// The most suspensions of one job.
    pub most: u64,
    /// The total time of suspension, ticks.
    pub time: u128,
    /// The total time of swap-outs and swap-ins, ticks.
    pub overhead: u128,
    /// The resources held meanwhile, processor-ticks.
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
}
