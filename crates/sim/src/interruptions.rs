//! How often a job was taken from its work, for how long, and what that cost.

use miserly_core::{Span, Time};

/// The interruptions of one job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interruptions {
    /// How often it was suspended.
    pub count: u32,
    /// From when it was taken from its work to when it was let run on, in all.
    pub suspended: Span,
    /// For how long it held processors without working on them, while it was written out and read back.
    pub overhead: Span,
}

/// The interruptions of a job that is not over, and the one that it is in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interrupted {
    so_far: Interruptions,
    since: Option<Time>,
}

impl Interrupted {
    /// It stops working.
    pub(crate) fn stop(&mut self, now: Time) {
        self.so_far.count += 1;
        self.since = Some(now);
    }

    /// It was written out.
    pub(crate) fn written(&mut self, now: Time) {
        if let Some(since) = self.since {
            self.so_far.overhead += now - since;
        }
    }

    /// It is let run on, and first is read back for so long.
    pub(crate) fn go_on(&mut self, now: Time, reading: Span) {
        if let Some(since) = self.since.take() {
            self.so_far.suspended += now - since;
            self.so_far.overhead += reading;
        }
    }

    /// It is over.
    pub(crate) fn over(mut self, now: Time) -> Interruptions {
        // Suspended at the very instant of its end, too late.
        self.go_on(now, Span::ZERO);
        self.so_far
    }
}
