//! The life of a promise: given, at risk for a cause, and judged once for each run of its job.
//!
//! ```text
//!            give                 start by then
//!   (none) --------> open ----------------------------> kept
//!                    |  ^  \---- start after it ------> late by ..., with the cause
//!          move_plan |  |   \--- end without a start -> lost, with the cause
//!                    v  |    \-- its user's wish -----> withdrawn
//!                  at risk
//! ```
//!
//! A promise is a latest start: the planned start at which it is given, and the slack of the queue. It never moves. The plan of
//! the ledger moves, and the promise is at risk while the plan is behind it. A job that runs again gets another promise.

use jiff::Timestamp;
use jiff::fmt::serde::timestamp::microsecond;
use miserly_api::model::{
    AtRisk, JudgedPromise, Judgement, PromiseChange, PromiseChangeReason, PromiseView, Window,
};
use miserly_core::{Span, Time};
use miserly_marks::{mark, mark_variant};
use miserly_saved::ticks;
use serde::{Deserialize, Serialize};

use crate::attempt::late_start::LONGEST_DELAY;
use crate::promise::counts::PromiseBook;
use crate::promise::recorded::{RecordedPromise, RecordedPromises};

/// A promise, as it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct GivenPromise {
    /// The wall time at which it was given.
    #[serde(with = "microsecond::required")]
    at: Timestamp,
    /// The latest start: the planned start and the slack.
    #[serde(with = "ticks")]
    pub(crate) latest: Time,
    /// The slack of the queue at that time.
    #[serde(default, skip_serializing_if = "is_zero", with = "ticks")]
    slack: Span,
    /// The cause for which the plan is behind the promise, while it is there: neither the submission nor an improvement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<PromiseChangeReason>,
}

impl GivenPromise {
    pub(crate) fn new(wall: Timestamp, planned: Time, slack: Span) -> GivenPromise {
        GivenPromise { at: wall, latest: planned + slack, slack, cause: None }
    }

    /// Updates the risk after a move of the plan. The first cause stays while the plan is behind the promise.
    fn plan_at(&mut self, planned: Time, cause: PromiseChangeReason) {
        self.cause = (planned > self.latest).then(|| self.cause.unwrap_or(cause));
    }
}

/// The judgement of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// The job started in time.
    Kept,
    /// The job started later.
    Late {
        /// The delay.
        #[serde(with = "ticks")]
        by: Span,
        cause: PromiseChangeReason,
    },
    /// The job ended without a start, against the wish of its user.
    Lost { cause: PromiseChangeReason },
    /// The user of the job cancelled, held or changed it.
    Withdrawn,
}

/// A promise and its judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Judged {
    #[serde(flatten)]
    given: GivenPromise,
    verdict: Verdict,
}

/// The promises to a job.
#[allow(clippy::unsafe_derive_deserialize, reason = "only the marks in its methods have unsafe code")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct PromiseLog {
    /// The latest starts by the plans of all runs: the first plan, every change that was not an improvement, and the last
    /// improvement of each, in order.
    #[serde(default, rename = "promises", skip_serializing_if = "RecordedPromises::is_empty")]
    entries: RecordedPromises,
    /// The promise that is not judged yet.
    #[serde(default, rename = "promise_open", skip_serializing_if = "Option::is_none")]
    open: Option<GivenPromise>,
    /// The judged promises, one for each run that had one.
    #[serde(default, rename = "promises_judged", skip_serializing_if = "Vec::is_empty")]
    judged: Vec<Judged>,
    /// The cause of the next promise, if the job was submitted again and has none since.
    #[serde(default, rename = "promise_renewed", skip_serializing_if = "Option::is_none")]
    renewed: Option<PromiseChangeReason>,
    /// The delay of a late start in ticks, and its cause, as an earlier version stored them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    late: Option<(i64, PromiseChangeReason)>,
    /// Whether an earlier version counted the job among the kept promises.
    #[serde(default, rename = "promise_kept", skip_serializing_if = "std::ops::Not::not")]
    kept: bool,
}

impl PromiseLog {
    /// Records a promise by the planned start: that of a run, or an earlier plan of the same run.
    ///
    /// A plan of a run whose promise is judged promises nothing: the job is being ended.
    pub(crate) fn give(&mut self, book: &mut PromiseBook, wall: Timestamp, planned: Time, slack: Span) {
        if self.open.is_none() && self.renewed.is_none() && !self.judged.is_empty() {
            return;
        }
        let cause = self.renewed.take().filter(|_| !self.entries.is_empty());
        if let Some(open) = &mut self.open {
            open.plan_at(planned, cause.unwrap_or(PromiseChangeReason::Amended));
        } else {
            book.count_given();
            self.open = Some(GivenPromise::new(wall, planned, slack));
        }
        let promise = RecordedPromise { at: wall, start: self.latest_by(planned), cause };
        // Of several improvements only the last one is kept.
        let is_improved =
            self.entries.len() > 1 && self.entries.last().is_some_and(|last| last.cause.is_none());
        if cause.is_none() && is_improved {
            self.entries.replace_last(promise);
        } else {
            self.entries.push(promise);
        }
    }

    /// Returns whether the next promise is an improvement of the plan, if it is earlier.
    pub(crate) fn only_improves(&self) -> bool {
        self.renewed.is_none() && self.open.is_some()
    }

    /// Returns the number of changes that were no improvements.
    pub(crate) fn changes(&self) -> usize {
        self.entries.iter().filter(|entry| entry.cause.is_some()).count()
    }

    /// Returns the wall time of the last improvement, and the number of [`changes`](PromiseLog::changes).
    pub(crate) fn last_improvement(&self) -> Option<(Timestamp, usize)> {
        self.entries.last().filter(|last| last.cause.is_none()).map(|last| (last.at, self.changes()))
    }

    /// Records that the plan moved later. [`Time::MAX`] means that no start is planned any more.
    pub(crate) fn move_plan(&mut self, wall: Timestamp, planned: Time, cause: PromiseChangeReason) {
        let Some(open) = &mut self.open else { return };
        open.plan_at(planned, cause);
        self.log(wall, self.latest_by(planned), cause);
    }

    /// Adds a change that is no improvement.
    fn log(&mut self, wall: Timestamp, latest: Time, cause: PromiseChangeReason) {
        mark_cause(cause);
        let promise = RecordedPromise { at: wall, start: latest, cause: Some(cause) };
        // A job that stays overdue moves the others again and again.
        if self.entries.last().is_some_and(|last| last.cause == Some(cause)) {
            self.entries.replace_last(promise);
        } else {
            self.entries.push(promise);
        }
    }

    /// Judges the open promise of a job that starts at `at`. `cause` is that of a delay that is longer than a launch.
    pub(crate) fn start(
        &mut self,
        book: &mut PromiseBook,
        job: i64,
        wall: Timestamp,
        at: Time,
        cause: PromiseChangeReason,
    ) {
        let Some(open) = self.open else { return };
        let planned = self.entries.last().map_or(open.latest, |last| last.start) - open.slack;
        let verdict = if at <= open.latest {
            Verdict::Kept
        } else {
            let cause = open.cause.unwrap_or_else(|| cause_of_delay(planned, at, cause));
            Verdict::Late { by: at - open.latest, cause }
        };
        self.judge(book, job, wall, verdict);
    }

    /// Returns whether the present run was judged as kept, and is not if it started at `at`.
    pub(crate) fn was_kept_until(&self, at: Time) -> bool {
        let is_late = |last: &Judged| last.verdict == Verdict::Kept && last.given.latest < at;
        self.open.is_none() && self.renewed.is_none() && self.judged.last().is_some_and(is_late)
    }

    /// Takes back the judgement of the last start, which did not take place then.
    pub(crate) fn take_start_back(&mut self, book: &mut PromiseBook, job: i64) {
        let is_start = |last: &mut Judged| matches!(last.verdict, Verdict::Kept | Verdict::Late { .. });
        if self.open.is_some() || self.renewed.is_some() {
            return;
        }
        let Some(Judged { given, verdict }) = self.judged.pop_if(is_start) else { return };
        mark!("a judgement is taken back");
        book.take_back(job, &given, verdict);
        self.open = Some(given);
    }

    /// Judges the open promise of a job that ends without a start, against the wish of its user.
    ///
    /// `cause` is that of the end, if the promise was not at risk.
    pub(crate) fn lose(
        &mut self,
        book: &mut PromiseBook,
        job: i64,
        wall: Timestamp,
        cause: PromiseChangeReason,
    ) {
        let Some(open) = self.open else { return };
        mark_cause(cause);
        self.judge(book, job, wall, Verdict::Lost { cause: open.cause.unwrap_or(cause) });
    }

    /// Judges the open promise of a job that its user takes back.
    pub(crate) fn withdraw(&mut self, book: &mut PromiseBook, job: i64, wall: Timestamp) {
        self.judge(book, job, wall, Verdict::Withdrawn);
    }

    fn judge(&mut self, book: &mut PromiseBook, job: i64, wall: Timestamp, verdict: Verdict) {
        let Some(given) = self.open.take() else { return };
        mark_variant!(verdict, Verdict { Kept, Late, Lost, Withdrawn });
        book.add(job, wall, &given, verdict);
        self.judged.push(Judged { given, verdict });
    }

    /// Records that the job is submitted again. The cause is that of its next promise.
    ///
    /// An open promise is at risk until the job has a plan again.
    pub fn renew(&mut self, cause: PromiseChangeReason) {
        mark_cause(cause);
        if let Some(open) = &mut self.open {
            open.plan_at(Time::MAX, cause);
        }
        // A loss is not forgotten because the job is then held, too.
        if self.renewed != Some(PromiseChangeReason::Lost) {
            self.renewed = Some(cause);
        }
    }

    /// Records that the plan of the job is given up, at the request of its user. The promise is withdrawn.
    pub(crate) fn give_up(
        &mut self,
        book: &mut PromiseBook,
        job: i64,
        wall: Timestamp,
        cause: PromiseChangeReason,
    ) {
        if self.open.is_some() {
            self.log(wall, Time::MAX, cause);
            self.withdraw(book, job, wall);
        }
    }

    /// Returns the latest start of the open promise.
    pub(crate) fn latest_start(&self) -> Option<Time> {
        self.open.map(|open| open.latest)
    }

    /// Returns the latest start that the present run is promised, or was promised.
    pub(crate) fn present(&self) -> Option<Time> {
        let judged = || self.judged.last().filter(|_| self.renewed.is_none()).map(|judged| judged.given);
        self.open.or_else(judged).map(|given| given.latest)
    }

    /// Returns the slack of the open promise.
    pub(crate) fn slack(&self) -> Option<Span> {
        self.open.map(|open| open.slack)
    }

    /// Returns whether the plan is behind the open promise, or its instant has passed without one.
    pub(crate) fn is_at_risk(&self, now: Time) -> bool {
        self.risk(None, now).is_some()
    }

    /// Returns the latest start by a planned start.
    fn latest_by(&self, planned: Time) -> Time {
        planned + self.open.map_or(Span::ZERO, |open| open.slack)
    }

    /// Turns the log of an earlier version, which judged nothing, into one with an open promise, if the job waits with one.
    ///
    /// The promise is the first one of the present run. It has no slack.
    pub(crate) fn settle(&mut self, waits_with_promise: bool) {
        if self.open.is_some() || !self.judged.is_empty() || self.renewed.is_some() || !waits_with_promise {
            return;
        }
        let mut entries: Vec<RecordedPromise> = self.entries.iter().copied().collect();
        let last_run = entries.iter().rposition(|entry| entry.cause.is_some_and(|cause| !moves_plan(cause)));
        let run = entries.split_off(last_run.unwrap_or(0));
        let Some(first) = run.first() else { return };
        let mut open = GivenPromise::new(first.at, first.start, Span::ZERO);
        for entry in &run[1..] {
            open.plan_at(entry.start, entry.cause.unwrap_or(PromiseChangeReason::Amended));
        }
        self.open = Some(open);
    }

    /// Returns whether the log has an open promise.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Returns the promise of the present run as clients see it now. `window` returns the window that begins at an instant.
    ///
    /// A job that waits has one only while it is open.
    pub(crate) fn view(
        &self,
        waits: bool,
        now: Time,
        window: impl Fn(Time) -> Window,
    ) -> Option<PromiseView> {
        if waits && self.open.is_none() {
            return None;
        }
        let earlier = || self.entries.first().filter(|_| self.judged.is_empty());
        let promised = self.present().or_else(|| earlier().map(|first| first.start))?;
        let planned = self.entries.last().filter(|_| self.renewed.is_none()).map(|last| last.start);
        let last = planned.filter(|at| *at < Time::MAX);
        let change = |(nth, entry): (usize, &RecordedPromise)| PromiseChange {
            at: entry.at,
            start: Some(entry.start).filter(|at| *at < Time::MAX).map(|at| window(at).start),
            why: match entry.cause {
                Some(cause) => cause,
                None if nth == 0 => PromiseChangeReason::Submitted,
                None => PromiseChangeReason::Earlier,
            },
        };
        Some(PromiseView {
            promised: window(promised),
            now: last.map(&window),
            at_risk: self.risk(last, now),
            history: self.entries.iter().enumerate().map(change).collect(),
        })
    }

    /// Returns how far the plan is behind the open promise. `last` is the latest start by the plan.
    ///
    /// While an overdue job is in the way, no plan follows the passing time.
    fn risk(&self, last: Option<Time>, now: Time) -> Option<AtRisk> {
        let open = self.open?;
        let behind = |last: Time| (last - open.latest - open.slack).as_secs_f64();
        let of_plan = open.cause.map(|cause| AtRisk { by: last.map(behind), why: cause });
        of_plan.or_else(|| {
            let by = Some(now - open.latest).filter(|by| *by > LONGEST_DELAY)?;
            Some(AtRisk { by: Some(by.as_secs_f64()), why: PromiseChangeReason::Overdue })
        })
    }

    /// Returns the judged promises, as clients see them. `wall` returns the wall time of an instant.
    pub(crate) fn judged(&self, wall: impl Fn(Time) -> Timestamp) -> Vec<JudgedPromise> {
        let view = |judged: &Judged| {
            let (judgement, by, cause) = match judged.verdict {
                Verdict::Kept => (Judgement::Kept, None, None),
                Verdict::Late { by, cause } => (Judgement::Late, Some(by), Some(cause)),
                Verdict::Lost { cause } => (Judgement::Lost, None, Some(cause)),
                Verdict::Withdrawn => (Judgement::Withdrawn, None, None),
            };
            let by = by.map(Span::as_secs_f64);
            JudgedPromise { promised: wall(judged.given.latest), judgement, by, why: cause }
        };
        self.earlier_judgement(&wall).into_iter().chain(self.judged.iter().map(view)).collect()
    }

    /// Returns what an earlier version recorded of the start.
    fn earlier_judgement(&self, wall: impl Fn(Time) -> Timestamp) -> Option<JudgedPromise> {
        let promised = wall(self.entries.first()?.start);
        let judged = |judgement, by, why| Some(JudgedPromise { promised, judgement, by, why });
        match self.late {
            Some((by, cause)) => {
                judged(Judgement::Late, Some(Span::from_ticks(by).as_secs_f64()), Some(cause))
            }
            None if self.kept => judged(Judgement::Kept, None, None),
            None => None,
        }
    }
}

/// Returns the cause of a start at `at` that was due at `due`: the launch, or `cause` if the delay is longer than that.
pub(crate) fn cause_of_delay(due: Time, at: Time, cause: PromiseChangeReason) -> PromiseChangeReason {
    if at - due <= LONGEST_DELAY { PromiseChangeReason::Launch } else { cause }
}

/// Counts a cause.
fn mark_cause(cause: PromiseChangeReason) {
    mark_variant!(
        cause,
        PromiseChangeReason {
            Submitted,
            Earlier,
            Overdue,
            Away,
            Shutdown,
            Launch,
            Capacity,
            Amended,
            Lost,
            Stopped,
            Held,
            Released,
            Requeued,
            Retried,
            Modified,
            Operator,
            Displaced,
            Refused,
        }
    );
}

/// Returns whether the cause moves the plan of a run. The others begin another run.
const fn moves_plan(cause: PromiseChangeReason) -> bool {
    !matches!(
        cause,
        PromiseChangeReason::Held
            | PromiseChangeReason::Released
            | PromiseChangeReason::Requeued
            | PromiseChangeReason::Retried
            | PromiseChangeReason::Modified
            | PromiseChangeReason::Lost
            | PromiseChangeReason::Displaced
    )
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(span: &Span) -> bool {
    *span == Span::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: i64 = 1;
    const SLACK: Span = Span::from_ticks(2);

    fn wall(micros: i64) -> Timestamp {
        Timestamp::from_microsecond(micros).unwrap()
    }

    fn at(ticks: i64) -> Time {
        Time::from_ticks(ticks)
    }

    /// Returns a log with a promise by a plan.
    fn given(planned: i64) -> (PromiseLog, PromiseBook) {
        let (mut log, mut book) = (PromiseLog::default(), PromiseBook::default());
        log.give(&mut book, wall(0), at(planned), SLACK);
        (log, book)
    }

    /// Checks the numbers of given, kept, late, lost, withdrawn and open promises.
    #[track_caller]
    fn check(book: &PromiseBook, expect: [u64; 6]) {
        let counts = book.counts();
        let seen = [counts.given, counts.kept, counts.late, counts.lost, counts.withdrawn, counts.open()];
        assert_eq!(seen, expect, "given, kept, late, lost, withdrawn, open");
    }

    #[test]
    fn earlier_plans_are_merged_and_move_no_promise() {
        let (mut log, mut book) = given(50);
        for planned in [40, 30, 20] {
            log.give(&mut book, wall(planned), at(planned), Span::ZERO);
        }
        assert_eq!(log.latest_start(), Some(at(52)));
        let starts: Vec<i64> = log.entries.iter().map(|entry| entry.start.ticks()).collect();
        assert_eq!(starts, [52, 22], "the slack of the promise is that of its plans");
        check(&book, [1, 0, 0, 0, 0, 1]);
        log.start(&mut book, JOB, wall(20), at(52), PromiseChangeReason::Away);
        log.start(&mut book, JOB, wall(60), at(60), PromiseChangeReason::Away);
        check(&book, [1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn the_slack_takes_up_a_delay_and_a_longer_one_is_late() {
        for (start, late) in [(10, None), (12, None), (13, Some(1)), (40, Some(28))] {
            let (mut log, mut book) = given(10);
            log.move_plan(wall(1), at(start), PromiseChangeReason::Away);
            assert_eq!(log.is_at_risk(Time::ZERO), late.is_some(), "{start}");
            log.start(&mut book, JOB, wall(2), at(start), PromiseChangeReason::Shutdown);
            let verdict = late.map_or(Verdict::Kept, |by| Verdict::Late {
                by: Span::from_ticks(by),
                cause: PromiseChangeReason::Away,
            });
            assert_eq!(log.judged.last().map(|judged| judged.verdict), Some(verdict), "{start}");
            check(&book, [1, u64::from(late.is_none()), u64::from(late.is_some()), 0, 0, 0]);
        }
    }

    #[test]
    fn a_plan_that_comes_back_in_time_is_no_risk() {
        let (mut log, mut book) = given(10);
        for planned in [20, 30] {
            log.move_plan(wall(1), at(planned), PromiseChangeReason::Overdue);
        }
        log.move_plan(wall(1), at(40), PromiseChangeReason::Capacity);
        assert_eq!(
            log.open.and_then(|open| open.cause),
            Some(PromiseChangeReason::Overdue),
            "the first cause"
        );
        assert_eq!(log.entries.len(), 3, "repetitions of a cause are merged: {log:?}");
        log.give(&mut book, wall(2), at(11), Span::ZERO);
        assert!(!log.is_at_risk(Time::ZERO));
        log.start(&mut book, JOB, wall(3), at(11), PromiseChangeReason::Away);
        check(&book, [1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn each_run_has_a_promise_of_its_own() {
        let (mut log, mut book) = given(10);
        log.start(&mut book, JOB, wall(10), at(10), PromiseChangeReason::Away);
        log.renew(PromiseChangeReason::Retried);
        assert!(
            log.view(true, Time::ZERO, |_| unreachable!()).is_none(),
            "it has none until its policy gives one"
        );
        log.give(&mut book, wall(15), at(30), SLACK);
        check(&book, [2, 1, 0, 0, 0, 1]);
        log.start(&mut book, JOB, wall(33), at(33), PromiseChangeReason::Away);
        check(&book, [2, 1, 1, 0, 0, 0]);
        assert_eq!(log.judged.len(), 2);
    }

    #[test]
    fn a_start_that_did_not_take_place_is_judged_again() {
        let (mut log, mut book) = given(10);
        log.start(&mut book, JOB, wall(10), at(10), PromiseChangeReason::Away);
        log.take_start_back(&mut book, JOB);
        check(&book, [1, 0, 0, 0, 0, 1]);
        log.start(&mut book, JOB, wall(20), at(20), PromiseChangeReason::Away);
        log.take_start_back(&mut book, JOB);
        assert!(book.missed(crate::Now { ticks: at(0), wall: Timestamp::UNIX_EPOCH }).is_empty());
        log.lose(&mut book, JOB, wall(30), PromiseChangeReason::Away);
        log.take_start_back(&mut book, JOB);
        check(&book, [1, 0, 0, 1, 0, 0]);
    }

    /// The second run has no promise, so its delay does not count for the first one.
    #[test]
    fn the_judgement_of_another_run_stays() {
        let (mut log, mut book) = given(10);
        log.start(&mut book, JOB, wall(10), at(10), PromiseChangeReason::Away);
        log.renew(PromiseChangeReason::Retried);
        assert!(!log.was_kept_until(at(99)));
        log.take_start_back(&mut book, JOB);
        check(&book, [1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn a_held_job_has_no_promise_and_gets_another_one() {
        let (mut log, mut book) = given(10);
        log.give_up(&mut book, JOB, wall(1), PromiseChangeReason::Held);
        log.renew(PromiseChangeReason::Released);
        check(&book, [1, 0, 0, 0, 1, 0]);
        log.give(&mut book, wall(5), at(60), SLACK);
        log.start(&mut book, JOB, wall(60), at(60), PromiseChangeReason::Away);
        check(&book, [2, 1, 0, 0, 1, 0]);
        let causes: Vec<_> = log.entries.iter().map(|entry| entry.cause).collect();
        assert_eq!(causes, [None, Some(PromiseChangeReason::Held), Some(PromiseChangeReason::Released)]);
    }

    #[test]
    fn an_operator_who_holds_a_job_puts_its_promise_at_risk() {
        let (mut log, mut book) = given(10);
        log.move_plan(wall(1), Time::MAX, PromiseChangeReason::Operator);
        log.renew(PromiseChangeReason::Released);
        log.give(&mut book, wall(5), at(60), SLACK);
        assert_eq!((log.latest_start(), log.is_at_risk(Time::ZERO)), (Some(at(12)), true));
        log.start(&mut book, JOB, wall(60), at(60), PromiseChangeReason::Away);
        let late = Verdict::Late { by: Span::from_ticks(48), cause: PromiseChangeReason::Operator };
        assert_eq!(log.judged.last().map(|judged| judged.verdict), Some(late));
        check(&book, [1, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn a_promise_whose_instant_has_passed_is_at_risk() {
        let (log, _) = given(10);
        let risk = |now| log.risk(log.latest_start(), now);
        assert_eq!([at(12), at(12) + LONGEST_DELAY].map(risk), [None, None]);
        let late = Some(AtRisk { by: Some(3.0), why: PromiseChangeReason::Overdue });
        assert_eq!(risk(at(12) + Span::from_ticks(3_000_000)), late);
    }

    #[test]
    fn a_promise_without_a_plan_is_at_risk() {
        let (mut log, mut book) = given(10);
        log.renew(PromiseChangeReason::Lost);
        let view = log
            .view(true, Time::ZERO, |start| Window { start: wall(start.ticks()), end: wall(start.ticks()) });
        let view = view.unwrap();
        assert_eq!(view.now, None, "that of its former plan");
        assert_eq!(view.at_risk, Some(AtRisk { by: None, why: PromiseChangeReason::Lost }));
        log.give(&mut book, wall(1), at(11), SLACK);
        assert!(!log.is_at_risk(Time::ZERO));
        check(&book, [1, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn the_promises_of_earlier_versions_are_read() {
        let stored =
            r#"{"promises":[{"at":1,"start":5},{"at":2,"start":9,"broken":"away"}],"late":[4,"away"]}"#;
        let mut log: PromiseLog = serde_json::from_str(stored).unwrap();
        assert_eq!((log.entries.len(), log.late), (2, Some((4, PromiseChangeReason::Away))));
        assert_eq!(serde_json::to_string(&log).unwrap(), stored);
        log.settle(false);
        assert_eq!((log.is_open(), log.judged(|_| Timestamp::UNIX_EPOCH).len()), (false, 1));
        let waits =
            r#"{"promises":[{"at":1,"start":5},{"at":2,"start":3},{"at":3,"start":9,"broken":"away"}]}"#;
        let mut log: PromiseLog = serde_json::from_str(waits).unwrap();
        log.settle(true);
        assert_eq!((log.latest_start(), log.is_at_risk(Time::ZERO)), (Some(at(5)), true));
        let text = serde_json::to_string(&log).unwrap();
        assert_eq!(serde_json::from_str::<PromiseLog>(&text).unwrap(), log);
    }

    #[test]
    fn the_promise_of_an_earlier_version_is_that_of_the_present_run() {
        let stored = r#"{"promises":[{"at":1,"start":5},{"at":2,"start":30,"broken":"retried"},{"at":3,"start":20}],
            "promise_kept":true}"#;
        let mut log: PromiseLog = serde_json::from_str(stored).unwrap();
        log.settle(true);
        assert_eq!((log.latest_start(), log.is_at_risk(Time::ZERO)), (Some(at(30)), false));
    }
}
