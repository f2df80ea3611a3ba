//! Submissions that are moved at random by a little.

use std::collections::BTreeMap;

use miserly_core::{Span, Time, draw};

use crate::{Job, TraceError};

/// The most seconds by which submissions can be moved: a day.
pub const MOST_SHAKE: u32 = 86_400;

/// The stream of draws.
const MOVES: u64 = 0x7368_616b;

/// Returns a submission that is moved by up to `by` whole seconds, earlier or later. It is not before time 0.
///
/// Each copy of a log has moves of its own. Their distribution is uniform.
///
/// # Source
/// Tsafrir, Ouaknine, Feitelson: Reducing performance evaluation sensitivity and variability by input shaking,
/// MASCOTS 2007.
pub fn shaken(submit: Time, number: i64, copy: u64, by: u32) -> Time {
    let by = i64::from(by);
    let width = 2 * by.unsigned_abs() + 1;
    let moved = i64::try_from(draw(MOVES, number, copy) % width).unwrap_or(0) - by;
    (submit + Span::from_secs(moved).unwrap_or(Span::ZERO)).max(Time::ZERO)
}

/// Jobs whose submissions were moved, in the order of their new submissions.
///
/// It holds the jobs of a few seconds at a time.
#[derive(Default)]
pub(crate) struct Shaken {
    /// Jobs that may not be the next one, by their submission and their place in the log.
    held: BTreeMap<(Time, u64), Job>,
    read: u64,
    ended: bool,
}

impl Shaken {
    /// Returns the next job. `source` returns the jobs of the log.
    pub(crate) fn next(
        &mut self,
        by: u32,
        copy: u64,
        mut source: impl FnMut() -> Result<Option<Job>, TraceError>,
    ) -> Result<Option<Job>, TraceError> {
        let reach = Span::from_secs(by.into()).unwrap_or(Span::ZERO);
        while !self.ended {
            let Some(mut job) = source()? else {
                self.ended = true;
                break;
            };
            let logged = job.request.submit;
            job.request.submit = shaken(logged, job.request.number, copy, by);
            self.held.insert((job.request.submit, self.read), job);
            self.read += 1;
            // No later job is submitted before this instant.
            let sure = (logged - reach).max(Time::ZERO);
            if self.held.first_key_value().is_some_and(|((first, _), _)| *first <= sure) {
                break;
            }
        }
        Ok(self.held.pop_first().map(|(_, job)| job))
    }
}
