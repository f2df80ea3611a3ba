//! The ends of attempts, and their consequences for the jobs.

use miserly_api::model::{KilledBy, Phase};
use miserly_core::{EndHow, Ended, Round, Span, State, Time, span_of_work};

use crate::{Action, Attempt, AttemptOutcome, Ending, Engine, JobState, Journal, Launcher, Now, Record};

impl AttemptOutcome {
    /// Returns the instant of the end, if it is known.
    pub(crate) fn at(&self) -> Option<Time> {
        match self {
            AttemptOutcome::Ended { at, .. } | AttemptOutcome::Failed { at, .. } => Some(*at),
            AttemptOutcome::Lost(_) | AttemptOutcome::NeverRan => None,
        }
    }

    fn how(&self) -> EndHow {
        match self {
            AttemptOutcome::Ended { by: None, .. } | AttemptOutcome::Failed { .. } => EndHow::Done,
            AttemptOutcome::Ended { by: Some(KilledBy::Time), .. } => EndHow::KilledAtEstimate,
            AttemptOutcome::Ended { .. } | AttemptOutcome::Lost(_) | AttemptOutcome::NeverRan => {
                EndHow::Cancelled
            }
        }
    }
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Applies the end of an attempt. Adds the consequences for the ledger to the round.
    pub(crate) fn end_attempt(
        &mut self,
        now: Now,
        at: Time,
        attempt: Attempt,
        outcome: &AttemptOutcome,
        round: &mut Round,
    ) {
        let number = attempt.job;
        let has_window = self.has_window_left(at, number);
        let Some(record) = self.jobs.get_mut(number) else { return self.forget(attempt) };
        let Some(run) = record.run.as_ref().filter(|run| run.nth == attempt.nth) else {
            return self.forget(attempt);
        };
        let ending = run.ending;
        record.never_ran += u32::from(*outcome == AttemptOutcome::NeverRan);
        match (ending, outcome) {
            (Some(Ending::Displaced), _) => {
                record.run = None;
                self.forget(attempt);
                if self.jobs.is_running(number) {
                    self.begin_window(at, number);
                }
            }
            (None, AttemptOutcome::NeverRan) if has_window => self.relaunch(number, attempt),
            (None, AttemptOutcome::NeverRan) | (Some(Ending::Requeued), _) => {
                self.resubmit(at, number, attempt, outcome, round);
            }
            (None, AttemptOutcome::Lost(_) | AttemptOutcome::Ended { by: Some(KilledBy::Shutdown), .. })
                if record.submission.restartable =>
            {
                self.resubmit(at, number, attempt, outcome, round);
            }
            (_, outcome) => {
                let phase = record.final_phase(now, outcome);
                self.record_suspended_time(number, outcome.at().unwrap_or(at));
                self.leave_system(number, outcome, round);
                self.finish(number, phase);
            }
        }
    }

    fn forget(&mut self, attempt: Attempt) {
        self.batch.act(attempt, Action::Forget);
    }

    /// Returns whether a job that has not run yet can still have its window.
    ///
    /// It may lose at most the grace period at the window's end, on which no job may count. This happens if the daemon is killed
    /// between the start and the launch.
    fn has_window_left(&self, at: Time, number: i64) -> bool {
        let (Some(end), Some(record)) = (self.window_end(number), self.jobs.get(number)) else {
            return !self.jobs.is_running(number);
        };
        let lost = at + Span::from_ticks(record.time) - end;
        lost <= record.grace(self.setup.grace)
    }

    /// Launches an attempt that never ran once more, in the same place.
    fn relaunch(&mut self, number: i64, attempt: Attempt) {
        self.forget(attempt);
        let end = self.window_end(number);
        let Some(record) = self.jobs.get_mut(number) else { return };
        let Some(run) = record.run.take() else { return };
        let end = if run.in_window { end } else { None };
        self.launch(number, run.cpus, end);
    }

    /// Records the time since the start in which a job did not run, from the work that is missing at its end.
    fn record_suspended_time(&mut self, number: i64, at: Time) {
        let Some(entry) = self.entry(number) else { return };
        let ran = span_of_work(entry.done(at) + entry.opportunistic_work(at), entry.request.procs());
        let Some(record) = self.jobs.get_mut(number) else { return };
        let Some(started) = record.started else { return };
        let away = at - Time::from_ticks(started) - ran;
        record.suspended_time = (away > Span::ZERO).then_some(away.ticks());
    }

    /// Removes a job from its ledger.
    fn leave_system(&mut self, number: i64, outcome: &AttemptOutcome, round: &mut Round) {
        let Some(job) = self.jobs.handle(number) else { return };
        let Some(entry) = self.entry(number) else { return };
        if entry.state == State::Waiting && entry.opportunistic.procs.is_zero() {
            round.withdrawn.push(job);
        } else {
            round.ended.push(Ended { job, how: outcome.how() });
        }
    }

    /// Removes a job from its ledger and submits it again as a new job.
    fn resubmit(
        &mut self,
        at: Time,
        number: i64,
        attempt: Attempt,
        outcome: &AttemptOutcome,
        round: &mut Round,
    ) {
        self.leave_system(number, outcome, round);
        self.forget(attempt);
        self.jobs.set_stopped(number);
        let Some(record) = self.jobs.get_mut(number) else { return };
        if let Some(run) = record.run.take() {
            self.cpus.give(&run.cpus);
        }
        record.started = None;
        record.promises.clear();
        record.state = JobState::Deferred;
        self.jobs.handles_mut().detach(number);
        self.submit_record(at, number, round);
    }
}

impl Record {
    /// Returns the final state of a job after the end of its attempt.
    fn final_phase(&self, now: Now, outcome: &AttemptOutcome) -> Phase {
        let wall = |at: Time| now.wall_at(at);
        let start = self.started.map(|at| wall(Time::from_ticks(at)));
        let is_ending = self.run.as_ref().is_some_and(|run| run.ending.is_some());
        match outcome {
            AttemptOutcome::Ended { at, exit, by: None } if !is_ending => {
                Phase::Done { start: start.unwrap_or(wall(*at)), end: wall(*at), exit: *exit }
            }
            AttemptOutcome::Ended { at, exit, by } => {
                let by = by.unwrap_or(KilledBy::User);
                Phase::Killed { start, end: wall(*at), by, exit: Some(*exit) }
            }
            // Also if it was ended before its command began.
            AttemptOutcome::Failed { at, .. } if is_ending => {
                Phase::Killed { start: None, end: wall(*at), by: KilledBy::User, exit: None }
            }
            AttemptOutcome::Failed { at, why, message } => {
                Phase::Failed { at: wall(*at), why: *why, message: message.clone() }
            }
            AttemptOutcome::Lost(why) => Phase::Lost { at: now.wall, why: *why },
            AttemptOutcome::NeverRan => {
                Phase::Killed { start: None, end: now.wall, by: KilledBy::User, exit: None }
            }
        }
    }
}
