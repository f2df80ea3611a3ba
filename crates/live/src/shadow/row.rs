//! A job of a queue and of its shadow.

use miserly_core::{JobNumber, Request, Time};
use serde::{Deserialize, Serialize};

use super::report::ComparedJob;

/// A job of the queue and of its shadow. Instants are in microseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Row {
    /// The number of the job.
    pub(super) number: JobNumber,
    /// The submission, or the release of a held job.
    pub(super) submitted: i64,
    pub(super) uid: u32,
    pub(super) procs: u64,
    /// The start on the machine.
    pub(super) start: Option<i64>,
    /// The start in the shadow.
    pub(super) shadow_start: Option<i64>,
    /// The runtime, in microseconds, if it is known.
    pub(super) runtime: Option<i64>,
    /// Whether the shadow's policy refused it.
    pub(super) refused: bool,
    /// Whether it ended without a start on the machine.
    pub(super) gone: bool,
    /// Whether it ran already when the shadow began, so that nothing is compared.
    pub(super) ran_before: bool,
    /// Microseconds since 1970 at the instant 0, as of the submission. So waits are exact, however the clock is set later.
    pub(super) offset: i64,
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
        (number, submitted, uid): (JobNumber, i64, u32),
        procs: u64,
        (start, shadow_start, runtime): (Option<i64>, Option<i64>, Option<i64>),
        refused: bool,
    ) -> Row {
        let (gone, ran_before, offset) = (false, false, 0);
        Row { number, submitted, uid, procs, start, shadow_start, runtime, refused, gone, ran_before, offset }
    }

    pub(super) fn new(request: &Request, submitted: Time, offset: i64) -> Row {
        Row {
            number: request.number,
            submitted: submitted.ticks().saturating_add(offset),
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

    pub(super) fn wall(&self, at: Time) -> i64 {
        at.ticks().saturating_add(self.offset)
    }
}
