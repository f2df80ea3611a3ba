//! A job of a queue and of its shadow.

use jiff::Timestamp;
use jiff::fmt::serde::timestamp::microsecond;
use miserly_core::{JobNumber, Request, Span, Time};
use miserly_engine::wall_after;
use miserly_saved::ticks;
use serde::{Deserialize, Serialize};

use super::report::ComparedJob;

/// A job of the queue and of its shadow.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Row {
    /// The number of the job.
    pub(super) number: JobNumber,
    /// The submission, or the release of a held job.
    #[serde(with = "microsecond::required")]
    pub(super) submitted: Timestamp,
    pub(super) uid: u32,
    pub(super) procs: u64,
    /// The start on the machine.
    #[serde(default, with = "microsecond::optional")]
    pub(super) start: Option<Timestamp>,
    /// The start in the shadow.
    #[serde(default, with = "microsecond::optional")]
    pub(super) shadow_start: Option<Timestamp>,
    /// The runtime, if it is known.
    #[serde(default, with = "ticks::optional")]
    pub(super) runtime: Option<Span>,
    /// Whether the shadow's policy refused it.
    pub(super) refused: bool,
    /// Whether it ended without a start on the machine.
    pub(super) gone: bool,
    /// Whether it ran already when the shadow began, so that nothing is compared.
    pub(super) ran_before: bool,
    /// The wall time of the instant 0, as of the submission. So waits are exact, however the clock is set later.
    #[serde(with = "microsecond::required")]
    pub(super) offset: Timestamp,
}

impl Row {
    /// Returns the job for a report.
    pub(super) fn compared(&self) -> ComparedJob {
        ComparedJob {
            submitted: self.submitted,
            uid: self.uid,
            procs: self.procs,
            start: self.start,
            shadow_start: self.shadow_start,
            runtime: self.runtime,
            refused: self.refused,
        }
    }

    /// Returns a row of the database: the job, its processors, and the starts on the machine and in the shadow with the
    /// runtime.
    pub(super) fn stored(
        (number, submitted, uid): (JobNumber, Timestamp, u32),
        procs: u64,
        (start, shadow_start, runtime): (Option<Timestamp>, Option<Timestamp>, Option<Span>),
        refused: bool,
    ) -> Row {
        let (gone, ran_before, offset) = (false, false, Timestamp::UNIX_EPOCH);
        Row { number, submitted, uid, procs, start, shadow_start, runtime, refused, gone, ran_before, offset }
    }

    pub(super) fn new(request: &Request, submitted: Time, offset: Timestamp) -> Row {
        Row {
            number: request.number,
            submitted: wall(offset, submitted),
            uid: request.user.unwrap_or(u32::MAX),
            procs: request.procs().get(),
            start: None,
            shadow_start: None,
            runtime: None,
            refused: false,
            gone: false,
            ran_before: false,
            offset,
        }
    }

    pub(super) fn wall(&self, at: Time) -> Timestamp {
        wall(self.offset, at)
    }
}

/// Returns the wall time of an instant. `offset` is the wall time of the instant 0.
pub(super) fn wall(offset: Timestamp, at: Time) -> Timestamp {
    wall_after(offset, at - Time::ZERO)
}
