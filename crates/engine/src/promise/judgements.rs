//! The judgements of promises: the changes of jobs that end a promise, and what becomes of it then.

use miserly_api::model::{Failure, KilledBy, Phase, PromiseChangeReason};
use miserly_core::{BreachCause, Span, State, Time};
use miserly_marks::mark;

use crate::promise::counts::PromiseBook;
use crate::promise::log::cause_of_delay;
use crate::{Attempt, Engine, Journal, Launcher, Now, Record};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Judges the promise of a job that is cancelled: its user withdraws it, and an operator loses it.
    pub(crate) fn judge_cancel(&mut self, now: Now, caller: u32, job: i64) {
        let wall = now.wall;
        let Some(record) = self.jobs.get_mut(job) else { return };
        if caller == record.uid {
            record.promise.withdraw(&mut self.values.promises, job, wall);
        } else {
            record.promise.lose(&mut self.values.promises, job, wall, PromiseChangeReason::Operator);
        }
    }

    /// Judges the promise of a job whose request is changed: its user withdraws it. After a change by an operator it stays.
    pub(crate) fn judge_change(&mut self, now: Now, caller: u32, record: &mut Record) {
        let is_own = caller == record.uid;
        if is_own {
            record.promise.withdraw(&mut self.values.promises, record.number, now.wall);
        }
        record.promise.renew(if is_own {
            PromiseChangeReason::Modified
        } else {
            PromiseChangeReason::Operator
        });
    }

    /// Judges the promises of jobs again that were launched after their promised starts, although recorded in time.
    pub(crate) fn judge_launches(&mut self, now: Now, launches: &[(Attempt, Time)]) {
        for (Attempt { job, nth }, at) in launches {
            let Some(record) = self.jobs.get_mut(*job) else { continue };
            let run = record.run.as_ref().filter(|run| run.nth == *nth && !run.is_displaced());
            let Some(run) = run else { continue };
            let in_window = run.in_window;
            if in_window && record.started.is_some_and(|started| *at < started) {
                // Its shim began the window by itself, before this daemon knew.
                record.started = Some(*at);
                self.batch.touch(*job);
            }
            if in_window && record.promise.was_kept_until(*at) {
                mark!("a kept promise was late");
                self.judge_start_again(now, *at, *job);
                self.batch.touch(*job);
            } else if !in_window && record.started.is_none_or(|started| started < *at) {
                mark!("an early run began later");
                // It was launched stopped, ahead of its window. Of an attempt in a restored state the start is not known before.
                record.started = Some(*at);
                self.batch.touch(*job);
            }
        }
    }

    /// Judges the promise of a job again whose recorded start did not take place. It starts at `at`.
    pub(crate) fn judge_start_again(&mut self, now: Now, at: Time, job: i64) {
        let (away, wall) = (self.promise_cause(BreachCause::Away), now.wall);
        let Some(record) = self.jobs.get_mut(job) else { return };
        let cause = record.started.map_or(away, |due| cause_of_delay(due, at, away));
        let book = &mut self.values.promises;
        record.promise.take_start_back(book, job);
        record.promise.move_plan(wall, at, cause);
        record.promise.start(book, job, wall, at, cause);
    }

    /// Opens the promise of a job again whose recorded start led to no command: it was neither kept nor broken.
    pub(crate) fn take_start_back(&mut self, job: i64) {
        if let Some(record) = self.jobs.get_mut(job) {
            record.promise.take_start_back(&mut self.values.promises, job);
        }
    }

    /// Judges the promise of a job as lost that does not run because its deadline has passed.
    pub(crate) fn lose_expired(&mut self, now: Now, job: i64) {
        let (cause, wall) = (self.promise_cause(BreachCause::Away), now.wall);
        let Some(record) = self.jobs.get_mut(job) else { return };
        mark!("the promise of an expired window is lost");
        record.promise.take_start_back(&mut self.values.promises, job);
        record.promise.lose(&mut self.values.promises, job, wall, cause);
    }

    /// Counts the open promises in the state of an earlier version, once.
    pub(crate) fn classify_promises(&mut self) {
        let open = self.jobs.records().filter(|record| record.promise.is_open()).count();
        let unreadable = self.unrecorded.unreadable_waiting().count();
        self.values.promises.classify((open + unreadable) as u64);
    }

    /// Returns the slack of the promise to a job, or that of its queue if it has none.
    pub(crate) fn slack_of(&self, job: i64) -> Span {
        let slack = |record: &Record| {
            record.promise.slack().unwrap_or_else(|| self.setup.promise_slack(&record.queue))
        };
        self.jobs.get(job).map_or(Span::ZERO, slack)
    }
}

impl Record {
    /// Judges the open promise of a job that ends so.
    pub(crate) fn judge_end(&mut self, book: &mut PromiseBook, phase: &Phase) {
        let (job, wall) = (self.number, phase.ended().unwrap_or_default());
        match phase {
            Phase::Failed { why: Failure::Dependency | Failure::NotInTime, .. }
            | Phase::Killed { by: KilledBy::User, .. } => {
                self.promise.withdraw(book, job, wall);
            }
            Phase::Failed { why: Failure::Refused, .. } => {
                self.promise.lose(book, job, wall, PromiseChangeReason::Refused);
            }
            // It ran ahead of its window.
            _ if self.runs() > 0 => {
                let began = self.started.unwrap_or(Time::ZERO);
                self.promise.start(book, job, wall, began, PromiseChangeReason::Away);
            }
            _ => self.promise.lose(book, job, wall, PromiseChangeReason::Lost),
        }
    }

    /// Turns the promises that an earlier version stored into those of this one.
    pub(crate) fn settle_promise(&mut self) {
        let entry = self.ledger_entry();
        let waits = entry.is_some_and(|entry| {
            let is_planned = entry.promise.is_some_and(|promise| promise.best < Time::MAX);
            entry.state == State::Waiting && is_planned
        });
        self.promise.settle(waits);
    }
}
