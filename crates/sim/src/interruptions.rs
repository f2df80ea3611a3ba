//! The suspensions of a job: their number, duration and cost.

use miserly_core::{Span, Time};

/// The interruptions of one job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interruptions {
    /// The number of suspensions.
    pub count: u32,
    /// The total time from suspension to resumption.
    pub suspended: Span,
    /// The total time for which it held processors without work, during swap-out and swap-in.
    pub overhead: Span,
}

/// The interruptions of a job in the system, and the present one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interrupted {
    so_far: Interruptions,
    since: Option<Time>,
}

impl Interrupted {
    /// Records the suspension of the job.
    pub(crate) fn stop(&mut self, now: Time) {
        self.so_far.count += 1;
        self.since = Some(now);
    }

    /// Records the end of a swap-out.
    pub(crate) fn written(&mut self, now: Time) {
        if let Some(since) = self.since {
            self.so_far.overhead += now - since;
        }
    }

    /// Records the resumption of the job, with a swap-in of this duration first.
    pub(crate) fn go_on(&mut self, now: Time, reading: Span) {
        if let Some(since) = self.since.take() {
            self.so_far.suspended += now - since;
            self.so_far.overhead += reading;
        }
    }

    /// Returns the interruptions at the end of the job.
    pub(crate) fn over(mut self, now: Time) -> Interruptions {
        // The job may have been suspended at the instant of its end, which has no effect.
        self.go_on(now, Span::ZERO);
        self.so_far
    }
}
