//! The life of a promise: given, moved earlier, broken for a cause, kept or late.
//!
//! ```text
//!              give                       start in time
//!   (nothing) ------> promised ------------------------------> kept
//!                      |   ^ give: an earlier start
//!                      |   |
//!      change,         |   | give, after renew: another promise,
//!      renew(a breach) |   | as the job was submitted again
//!                      v   |
//!                    broken ---------------------------------> late by ..., with the cause
//!                                         start
//! ```
//!
//! A promise is never erased: what a job was promised first, each breach and the present promise stay in its record.

use miserly_api::model::{LateStart, PromiseChange, PromiseChangeReason, PromiseView, Window};
use miserly_core::{BreachCause, Span, Time};
use serde::{Deserialize, Serialize};

use crate::recorded_promises::{RecordedPromise, RecordedPromises};

/// The cause of a change of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PromiseCause {
    /// A job was overdue.
    Overdue,
    /// No daemon ran or it stalled, or the machine slept.
    Away,
    /// The machine shut down.
    Shutdown,
    /// The machine lost capacity.
    Capacity,
    /// A request was amended.
    Amended,
    /// The attempt was lost, and the job runs again.
    Lost,
    /// The policy of the queue made a mistake, and the queue was stopped.
    Stopped,
    /// The job was held.
    Held,
    /// The job was released.
    Released,
    /// A user requested another run of the job.
    Requeued,
    /// The job failed, and runs again.
    Retried,
    /// The request of the job was changed.
    Modified,
}

impl PromiseCause {
    /// Returns whether the cause is a breach. The others are requests for the job itself.
    pub(crate) const fn is_breach(self) -> bool {
        !matches!(
            self,
            PromiseCause::Held
                | PromiseCause::Released
                | PromiseCause::Requeued
                | PromiseCause::Retried
                | PromiseCause::Modified
        )
    }

    const fn reason(self) -> PromiseChangeReason {
        match self {
            PromiseCause::Overdue => PromiseChangeReason::Overdue,
            PromiseCause::Away => PromiseChangeReason::Away,
            PromiseCause::Shutdown => PromiseChangeReason::Shutdown,
            PromiseCause::Capacity => PromiseChangeReason::Capacity,
            PromiseCause::Amended => PromiseChangeReason::Amended,
            PromiseCause::Lost => PromiseChangeReason::Lost,
            PromiseCause::Stopped => PromiseChangeReason::Stopped,
            PromiseCause::Held => PromiseChangeReason::Held,
            PromiseCause::Released => PromiseChangeReason::Released,
            PromiseCause::Requeued => PromiseChangeReason::Requeued,
            PromiseCause::Retried => PromiseChangeReason::Retried,
            PromiseCause::Modified => PromiseChangeReason::Modified,
        }
    }
}

impl From<BreachCause> for PromiseCause {
    fn from(cause: BreachCause) -> PromiseCause {
        match cause {
            BreachCause::Overdue => PromiseCause::Overdue,
            BreachCause::Away => PromiseCause::Away,
            BreachCause::Capacity => PromiseCause::Capacity,
            BreachCause::Amended => PromiseCause::Amended,
        }
    }
}

/// The numbers of promised jobs since the state was created. Each job counts at most once in each.
///
/// A job that left before its start is in `given` only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct PromiseCounts {
    /// Jobs that were promised a start.
    #[serde(rename = "promises")]
    pub(crate) given: u64,
    /// Jobs that started in time.
    #[serde(default)]
    pub(crate) kept: u64,
    /// Jobs to which a promise was broken.
    pub(crate) broken: u64,
    /// Jobs that started later than promised.
    pub(crate) late: u64,
}

/// The promises to a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct PromiseLog {
    /// The first promise, every change that was not an improvement, and the last improvement of each, in order.
    #[serde(default, rename = "promises", skip_serializing_if = "RecordedPromises::is_empty")]
    entries: RecordedPromises,
    /// The delay of a start that was later than promised, in ticks, and its cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    late: Option<(i64, PromiseCause)>,
    /// Whether the job counts among the kept promises.
    #[serde(default, rename = "promise_kept", skip_serializing_if = "std::ops::Not::not")]
    kept: bool,
    /// The cause of the next promise, if the job was submitted again.
    #[serde(default, rename = "promise_renewed", skip_serializing_if = "Option::is_none")]
    renewed: Option<PromiseCause>,
}

impl PromiseLog {
    /// Records a promise: the first one, an earlier one, or that of a job that was submitted again.
    pub(crate) fn give(&mut self, counts: &mut PromiseCounts, wall: i64, latest: Time) {
        if let Some(cause) = self.renewed.take().filter(|_| !self.entries.is_empty()) {
            return self.change(counts, wall, latest, cause);
        }
        counts.given += u64::from(self.entries.is_empty());
        let promise = RecordedPromise { at: wall, start: latest.ticks(), cause: None };
        // Of several improvements only the last one is kept.
        if self.entries.len() > 1 && self.entries.last().is_some_and(|last| last.cause.is_none()) {
            self.entries.replace_last(promise);
        } else {
            self.entries.push(promise);
        }
    }

    /// Returns whether the next promise is an improvement, if it is earlier.
    pub(crate) fn only_improves(&self) -> bool {
        self.renewed.is_none() && !self.entries.is_empty()
    }

    /// Returns the number of changes that were no improvements.
    pub(crate) fn changes(&self) -> usize {
        self.entries.iter().filter(|entry| entry.cause.is_some()).count()
    }

    /// Returns the wall time of the last improvement, and the number of [`changes`](PromiseLog::changes).
    pub(crate) fn last_improvement(&self) -> Option<(i64, usize)> {
        self.entries.last().filter(|last| last.cause.is_none()).map(|last| (last.at, self.changes()))
    }

    /// Records that the promise is broken, and the new one. [`Time::MAX`] means that no start is promised any more.
    pub(crate) fn change(
        &mut self,
        counts: &mut PromiseCounts,
        wall: i64,
        latest: Time,
        cause: PromiseCause,
    ) {
        if cause.is_breach() && !self.is_broken() {
            counts.broken += 1;
            counts.kept -= u64::from(std::mem::take(&mut self.kept));
        }
        let promise = RecordedPromise { at: wall, start: latest.ticks(), cause: Some(cause) };
        // A job that stays overdue moves the others again and again.
        if self.entries.last().is_some_and(|last| last.cause == Some(cause)) {
            self.entries.replace_last(promise);
        } else {
            self.entries.push(promise);
        }
    }

    /// Records a start, in time or late.
    pub(crate) fn start(&mut self, counts: &mut PromiseCounts, at: Time) {
        let Some((promised, breach)) = self.entries.first_breach() else {
            let keeps = !self.entries.is_empty() && !std::mem::replace(&mut self.kept, true);
            counts.kept += u64::from(keeps);
            return;
        };
        let Some(promised) = promised else { return };
        let by = at - Time::from_ticks(promised.start);
        let Some(cause) = breach.cause.filter(|_| by > Span::ZERO) else { return };
        counts.late += u64::from(self.late.is_none());
        self.late = Some((by.ticks(), cause));
    }

    /// Records that a window begins later than the start that was recorded, and why.
    pub(crate) fn start_again(
        &mut self,
        counts: &mut PromiseCounts,
        wall: i64,
        at: Time,
        cause: PromiseCause,
    ) {
        if !self.entries.is_empty() {
            self.change(counts, wall, at, cause);
            self.start(counts, at);
        }
    }

    /// Records that the job is submitted again. Its next promise has this cause.
    pub fn renew(&mut self, cause: PromiseCause) {
        // A loss is not forgotten because the job is then held, too.
        if self.renewed.is_none_or(|before| !before.is_breach()) {
            self.renewed = Some(cause);
        }
    }

    /// Records that the job gives up its promise, at the request of its user.
    pub(crate) fn give_up(&mut self, counts: &mut PromiseCounts, wall: i64, cause: PromiseCause) {
        if !self.entries.is_empty() {
            self.change(counts, wall, Time::MAX, cause);
        }
    }

    /// Returns the latest start that is promised now.
    pub(crate) fn latest_start(&self) -> Option<Time> {
        let latest = self.entries.last().map(|entry| Time::from_ticks(entry.start));
        latest.filter(|at| *at < Time::MAX)
    }

    /// Returns whether a promise to the job was broken.
    pub(crate) fn is_broken(&self) -> bool {
        self.entries.iter().any(RecordedPromise::is_breach)
    }

    /// Returns the delay of a late start, as clients see it.
    pub(crate) fn late(&self) -> Option<LateStart> {
        self.late.map(|(by, why)| LateStart { by: Span::from_ticks(by).as_secs_f64(), why: why.reason() })
    }

    /// Returns the promise as clients see it. `window` returns the window that begins at an instant.
    pub(crate) fn view(&self, window: impl Fn(Time) -> Window) -> Option<PromiseView> {
        let (first, last) = (self.entries.first()?, self.entries.last()?);
        let promised = window(Time::from_ticks(first.start));
        let window = |entry: &RecordedPromise| {
            (entry.start < Time::MAX.ticks()).then(|| window(Time::from_ticks(entry.start)))
        };
        let change = |(nth, entry): (usize, &RecordedPromise)| PromiseChange {
            at: jiff::Timestamp::from_microsecond(entry.at).unwrap_or(jiff::Timestamp::UNIX_EPOCH),
            start: window(entry).map(|window| window.start),
            why: match entry.cause {
                Some(cause) => cause.reason(),
                None if nth == 0 => PromiseChangeReason::Submitted,
                None => PromiseChangeReason::Earlier,
            },
        };
        let broken = self.entries.iter().find(|entry| entry.is_breach());
        Some(PromiseView {
            promised,
            now: window(last),
            broken: broken.and_then(|entry| entry.cause).map(PromiseCause::reason),
            history: self.entries.iter().enumerate().map(change).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ticks: i64) -> Time {
        Time::from_ticks(ticks)
    }

    #[test]
    fn improvements_are_merged_and_counted_once() {
        let (mut log, mut counts) = (PromiseLog::default(), PromiseCounts::default());
        for latest in [50, 40, 30, 20] {
            log.give(&mut counts, latest, at(latest));
        }
        log.start(&mut counts, at(20));
        log.start(&mut counts, at(25));
        let starts: Vec<i64> = log.entries.iter().map(|entry| entry.start).collect();
        assert_eq!(starts, [50, 20]);
        assert_eq!(counts, PromiseCounts { given: 1, kept: 1, ..PromiseCounts::default() });
    }

    #[test]
    fn a_job_counts_once_however_often_its_promise_is_broken() {
        let (mut log, mut counts) = (PromiseLog::default(), PromiseCounts::default());
        log.give(&mut counts, 0, at(10));
        for latest in [20, 30] {
            log.change(&mut counts, 1, at(latest), PromiseCause::Overdue);
        }
        log.change(&mut counts, 1, at(40), PromiseCause::Capacity);
        log.start(&mut counts, at(40));
        assert_eq!(log.entries.len(), 3, "repetitions of a cause are merged: {log:?}");
        assert_eq!(log.late, Some((30, PromiseCause::Overdue)));
        assert_eq!(counts, PromiseCounts { given: 1, kept: 0, broken: 1, late: 1 });
    }

    #[test]
    fn a_kept_promise_can_still_be_broken_by_a_loss() {
        let (mut log, mut counts) = (PromiseLog::default(), PromiseCounts::default());
        log.give(&mut counts, 0, at(10));
        log.start(&mut counts, at(10));
        assert_eq!(counts.kept, 1);
        log.renew(PromiseCause::Lost);
        log.give(&mut counts, 15, at(30));
        log.start(&mut counts, at(30));
        assert_eq!(counts, PromiseCounts { given: 1, kept: 0, broken: 1, late: 1 });
        assert_eq!(log.late, Some((20, PromiseCause::Lost)));
    }

    #[test]
    fn the_job_of_a_user_who_held_it_has_no_broken_promise() {
        let (mut log, mut counts) = (PromiseLog::default(), PromiseCounts::default());
        log.give(&mut counts, 0, at(10));
        log.give_up(&mut counts, 1, PromiseCause::Held);
        log.renew(PromiseCause::Released);
        log.give(&mut counts, 5, at(60));
        log.start(&mut counts, at(60));
        assert_eq!(counts, PromiseCounts { given: 1, kept: 1, ..PromiseCounts::default() });
        let causes: Vec<_> = log.entries.iter().map(|entry| entry.cause).collect();
        assert_eq!(causes, [None, Some(PromiseCause::Held), Some(PromiseCause::Released)]);
    }

    #[test]
    fn the_promises_of_earlier_versions_are_read() {
        let stored =
            r#"{"promises":[{"at":1,"start":5},{"at":2,"start":9,"broken":"away"}],"late":[4,"away"]}"#;
        let log: PromiseLog = serde_json::from_str(stored).unwrap();
        assert_eq!((log.entries.len(), log.late), (2, Some((4, PromiseCause::Away))));
        assert_eq!(serde_json::to_string(&log).unwrap(), stored);
    }
}
