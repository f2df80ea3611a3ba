//! The ends of attempts, and their consequences for the jobs.

use miserly_api::model::{Failure, KilledBy, LostBy, Phase, PromiseChangeReason, number_ranges};
use miserly_core::{EndHow, Ended, Round, Span, State, Time, span_of_work};
use miserly_marks::{mark, mark_variant};
use miserly_units::duration;

use crate::limits::{CpuHours, Limits};
use crate::submission::check::span_from_secs;
use crate::{
    Action, Attempt, AttemptOutcome, Ending, Engine, JobState, Journal, Launcher, Now, Record, Run, Usage,
};

impl AttemptOutcome {
    /// Returns the instant of the end, if it is known.
    pub(crate) fn at(&self) -> Option<Time> {
        match self {
            AttemptOutcome::Ended { at, .. }
            | AttemptOutcome::WrittenOut { at, .. }
            | AttemptOutcome::Failed { at, .. } => Some(*at),
            AttemptOutcome::Lost(_) | AttemptOutcome::NeverRan => None,
        }
    }

    /// Returns the outcome with an end no later than an instant.
    ///
    /// A launcher reads instants of an earlier boot by a clock that may be wrong.
    fn until(&self, latest: Time) -> AttemptOutcome {
        let mut outcome = self.clone();
        if let AttemptOutcome::Ended { at, .. }
        | AttemptOutcome::WrittenOut { at, .. }
        | AttemptOutcome::Failed { at, .. } = &mut outcome
        {
            *at = latest.min(*at);
        }
        outcome
    }

    /// Returns whether the command ended, or had its whole time limit.
    fn is_by_itself(&self) -> bool {
        matches!(self, AttemptOutcome::Ended { by: None | Some(KilledBy::Time), .. })
    }

    fn how(&self) -> EndHow {
        match self {
            AttemptOutcome::Ended { by: None, .. } | AttemptOutcome::Failed { .. } => EndHow::Done,
            AttemptOutcome::Ended { by: Some(KilledBy::Time), .. } => EndHow::KilledAtEstimate,
            AttemptOutcome::Ended { .. }
            | AttemptOutcome::WrittenOut { .. }
            | AttemptOutcome::Lost(_)
            | AttemptOutcome::NeverRan => EndHow::Cancelled,
        }
    }
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Records what attempts used. Those of jobs that are unknown or have finished are dropped.
    pub(crate) fn record_usage(&mut self, used: &[(Attempt, Usage)]) {
        for (attempt, usage) in used {
            if let Some(record) = self.jobs.get_mut(attempt.job) {
                record.usage.add(attempt.nth, *usage);
                self.batch.touch(attempt.job);
            }
        }
    }

    /// Applies the end of an attempt. Adds the consequences for the ledger to the round.
    pub(crate) fn end_attempt(
        &mut self,
        now: Now,
        at: Time,
        attempt: Attempt,
        outcome: &AttemptOutcome,
        round: &mut Round,
    ) {
        let (number, outcome) = (attempt.job, &outcome.until(now.ticks));
        if self.end_aside(now, attempt, outcome) {
            return;
        }
        mark_variant!(outcome, AttemptOutcome { Ended, WrittenOut, Failed, Lost, NeverRan });
        if *outcome == AttemptOutcome::NeverRan {
            // If it had a latest start, it has not run by then.
            self.watch_start(number);
            if self.end_waiting(attempt) {
                return;
            }
        }
        self.begin_waiting(attempt, outcome.at().unwrap_or(at));
        let running = self.jobs.is_running(number);
        // Else its window has begun without this daemon.
        let waiting = self.is_waiting(number) && !self.batch.shims_begun.contains(&number);
        if self.jobs.contains(number) {
            self.release_adopted(attempt);
        }
        let Some(record) = self.jobs.get_mut(number) else { return self.end_adopted(attempt) };
        let Some(run) = record.run.as_mut().filter(|run| run.nth == attempt.nth) else {
            return self.end_adopted(attempt);
        };
        if outcome.is_by_itself() {
            // It came before the end that was to make it run again. The executor starts it no more.
            let again = |ending: &Ending| *ending != Ending::Cancelled;
            if run.ending.take_if(|ending| again(ending)).is_some() {
                mark!("a requeued job has ended by itself");
            }
        }
        let ending = run.ending;
        record.never_ran += u32::from(*outcome == AttemptOutcome::NeverRan);
        let again = record.cause_of_another_run(outcome);
        record.retried.extend(record.failure_to_retry(outcome));
        let is_too_late = record.is_too_late(at);
        let is_lost = ending == Some(Ending::WrittenOut) && !record.note_write_out(outcome);
        match (ending, outcome) {
            _ if is_lost => {
                mark!("a job was not written out");
                self.resubmit(at, attempt, outcome, PromiseChangeReason::Lost, round);
            }
            (Some(Ending::Displaced | Ending::WrittenOut), _) => {
                mark!("the end of an attempt without a consequence for its job");
                let run = record.run.take();
                if run.as_ref().is_some_and(Run::is_displaced) && !running {
                    record.started = None;
                }
                self.cpus.give(&run.map(|run| run.cpus).unwrap_or_default());
                self.batch.touch(number);
                self.forget(attempt);
                if self.jobs.is_running(number) {
                    mark!("such an attempt ends in the window of its job");
                    self.begin_window(now, at, number);
                }
            }
            (None, AttemptOutcome::NeverRan) if is_too_late => {
                mark!("a lost start is too late for its job");
                self.take_start_back(number);
                self.give_up(now, at, number, round);
            }
            (None, AttemptOutcome::NeverRan) if running => {
                mark!("a window without a command");
                self.begin_late(now, at, attempt, round);
            }
            (None, AttemptOutcome::NeverRan) => self.run_again(at, attempt),
            _ => match again {
                Some(_) if waiting => {
                    mark!("an early run is repeated");
                    self.run_again(at, attempt);
                }
                Some(cause) => self.resubmit(at, attempt, outcome, cause, round),
                None => {
                    let phase = record.final_phase(now, outcome);
                    self.record_suspended_time(number, outcome.at().unwrap_or(at));
                    self.leave_system(at, number, outcome, round);
                    self.finish(number, phase);
                }
            },
        }
    }

    /// Lets a job be given up at its latest start, if it has one.
    pub(crate) fn watch_start(&mut self, number: i64) {
        let by = self.jobs.get(number).and_then(|record| record.start_by);
        // A start at that very instant is in time.
        self.latest_starts.set(number, by.map(|by| by + Span::TICK));
    }

    /// Records why epilogs of attempts failed. The jobs end as they would have.
    pub(crate) fn record_epilogs(&mut self, failed: Vec<(Attempt, String)>) {
        for (attempt, why) in failed {
            if let Some(record) = self.jobs.get_mut(attempt.job) {
                record.epilog_failed = Some(why);
                self.batch.touch(attempt.job);
            }
        }
    }

    pub(crate) fn forget(&mut self, attempt: Attempt) {
        self.batch.act(attempt, Action::Forget);
    }

    /// Gives up the jobs whose commands have not run by the latest start that their users set.
    ///
    /// They leave their ledgers in this round, so none of them starts in it.
    pub(crate) fn give_up_late(&mut self, now: Now, at: Time, round: &mut Round) {
        for number in self.latest_starts.due(at) {
            let Some(record) = self.jobs.get(number).filter(|record| !record.has_run()) else { continue };
            self.give_up(now, at, record.number, round);
        }
    }

    /// Finishes a job whose command has not run by its latest start.
    pub(crate) fn give_up(&mut self, now: Now, at: Time, number: i64, round: &mut Round) {
        mark!("a job is given up");
        let Some(record) = self.jobs.get(number) else { return };
        let wait = record.submission.start_within.and_then(span_from_secs).unwrap_or_default();
        let since = if record.begin.is_some() { "its earliest start" } else { "its submission" };
        let message = format!("it had not started {} after {since}", duration(wait));
        let why = Failure::NotInTime;
        let outcome = AttemptOutcome::Failed { at, why, message: message.clone() };
        let has_missed = record.promise.present().is_some_and(|latest| latest < at);
        if has_missed {
            self.lose_expired(now, number);
        }
        if self.jobs.get(number).is_some_and(Record::is_in_ledger) {
            self.leave_system(at, number, &outcome, round);
        }
        self.finish(number, Phase::Failed { at: now.wall_at(at), why, message });
    }

    /// Finishes a job in the ledger whose deadline has passed before its command could run.
    pub(crate) fn expire(&mut self, now: Now, number: i64, round: &mut Round) {
        mark!("a deadline passes before the start");
        let message = "its deadline passed before it could run".to_owned();
        let why = Failure::Refused;
        let outcome = AttemptOutcome::Failed { at: now.ticks, why, message: message.clone() };
        self.lose_expired(now, number);
        self.leave_system(now.ticks, number, &outcome, round);
        self.finish(number, Phase::Failed { at: now.wall, why, message });
    }

    /// Runs a job again that keeps its place: it waits for its window, or is suspended in it.
    fn run_again(&mut self, at: Time, attempt: Attempt) {
        let Some(run) = self.jobs.run(attempt.job) else { return };
        mark!("a job runs again in its place");
        let suspended = run.stopped && run.in_window;
        // After a restore also a job that does not run ahead may have an attempt beside its place.
        let waits =
            run.stopped || self.entry(attempt.job).is_none_or(|entry| entry.opportunistic.procs.is_zero());
        let Some(record) = self.jobs.get_mut(attempt.job) else { return };
        if !suspended {
            record.started = (!waits).then_some(at);
        }
        if waits && !suspended {
            mark!("it waits for idle resources");
            // It runs again when resources are idle, or in its window.
            record.run = None;
            self.batch.touch(attempt.job);
            return self.forget(attempt);
        }
        self.launch_again(attempt, None);
        if let Some(run) = self.jobs.run_mut(attempt.job).filter(|_| suspended) {
            mark!("a suspended job is launched stopped");
            (run.stopped, run.in_window) = (true, true);
            let attempt = Attempt { nth: run.nth, ..attempt };
            self.batch.act(attempt, Action::Stop);
        }
    }

    /// Launches another attempt in the place of one that is gone.
    pub(crate) fn launch_again(&mut self, attempt: Attempt, end: Option<Time>) {
        self.forget(attempt);
        let Some(record) = self.jobs.get_mut(attempt.job) else { return };
        let Some(run) = record.run.take() else { return };
        self.launch(attempt.job, run.cpus, end);
    }

    /// Records the time since the start in which a job did not run, from the work that is missing at its end.
    fn record_suspended_time(&mut self, number: i64, at: Time) {
        let Some(entry) = self.entry(number) else { return };
        let ran = span_of_work(entry.done(at) + entry.opportunistic_work(at), entry.request.procs());
        let Some(record) = self.jobs.get_mut(number) else { return };
        let Some(started) = record.started else { return };
        let away = at - started - ran;
        record.suspended_time = (away > Span::ZERO).then_some(away);
    }

    /// Removes a job from its ledger.
    fn leave_system(&mut self, at: Time, number: i64, outcome: &AttemptOutcome, round: &mut Round) {
        self.count_window(at, number, outcome);
        let Some(job) = self.jobs.handle(number) else { return };
        let Some(entry) = self.entry(number) else { return };
        if entry.state == State::Waiting && entry.opportunistic.procs.is_zero() {
            mark!("an attempt ends of a job that waits");
            round.withdrawn.push(job);
        } else {
            round.ended.push(Ended { job, how: outcome.how() });
        }
    }

    /// Removes a job from its ledger that is suspended and has no attempt. Returns its final state: a user ends it.
    pub(crate) fn end_without_attempt(
        &mut self,
        now: Now,
        at: Time,
        number: i64,
        round: &mut Round,
    ) -> Phase {
        mark!("a suspended job without an attempt is cancelled");
        let start = self.jobs.get(number).and_then(|record| record.started).map(|start| now.wall_at(start));
        self.record_suspended_time(number, at);
        self.leave_system(at, number, &AttemptOutcome::WrittenOut { at, failed: None }, round);
        let (end, by, cpu_ranges) = (now.wall, KilledBy::User, vec![]);
        Phase::Killed { start, end, by, exit: None, cpu_ranges }
    }

    /// Removes a job from its ledger and submits it again as a new job. Its record keeps the promises to it.
    pub(crate) fn resubmit(
        &mut self,
        at: Time,
        attempt: Attempt,
        outcome: &AttemptOutcome,
        cause: PromiseChangeReason,
        round: &mut Round,
    ) {
        let number = attempt.job;
        mark!("a job is submitted again");
        let has_place = self.jobs.get(number).is_some_and(Record::is_in_ledger);
        self.leave_system(at, number, outcome, round);
        self.forget(attempt);
        self.jobs.leave_ledger(number);
        let Some(record) = self.jobs.get_mut(number) else { return };
        if let Some(run) = record.run.take() {
            self.cpus.give(&run.cpus);
        }
        (record.started, record.start_reason, record.restarts) = (None, None, false);
        record.promise.renew(cause);
        record.state = JobState::Deferred;
        self.take_overrun_back(number);
        // A restored state may not have known of the attempt: then the job waits for its place as before.
        if has_place && self.jobs.get(number).is_some_and(|record| self.fits_pool(record)) {
            return self.submit_record(at, number, round);
        }
        mark!("a deferred job runs again");
        self.dependencies.leave_place(number);
        if let Some(record) = self.jobs.get_mut(number) {
            record.entry = None;
            self.dependencies.track(record);
        }
        self.batch.touch(number);
    }

    /// Counts the window of an attempt that has ended, if its time on processors or GPUs is limited.
    ///
    /// A command that never ran counts nothing. The end of a lost attempt is not known, so no window counts more than its
    /// processors times its time limit.
    pub(crate) fn count_window(&mut self, at: Time, number: i64, outcome: &AttemptOutcome) {
        if matches!(outcome, AttemptOutcome::NeverRan | AttemptOutcome::Failed { .. }) {
            return;
        }
        let limits = &self.setup.user_limits;
        let kinds: [fn(&Limits) -> Option<CpuHours>; 2] =
            [|limits| limits.cpu_hours, |limits| limits.gpu_hours];
        let periods = kinds.map(|kind| limits.longest_period(kind));
        if periods == [None; 2] {
            return;
        }
        mark!("a window counts for a limit");
        let (Some(record), Some(entry)) = (self.jobs.get(number), self.entry(number)) else { return };
        let at = outcome.at().unwrap_or(at);
        let most = u128::from(record.submission.cpus) * u128::from(record.time.ticks().unsigned_abs());
        let work = entry.done(at).min(most);
        let gpu_time = record.gpu_time(entry, at);
        let times = [(&mut self.used_time, work), (&mut self.used_gpu_time, gpu_time)];
        for ((times, work), (kind, period)) in times.into_iter().zip(kinds.into_iter().zip(periods)) {
            let Some(period) = period else { continue };
            for bound in limits.bounds_of(record, kind) {
                times.add(bound.scope, at, work, period);
            }
        }
    }
}

impl Record {
    /// Takes note of the end of an attempt that was to be written out. Returns whether the job continues where it was written out.
    fn note_write_out(&mut self, outcome: &AttemptOutcome) -> bool {
        let failed = match outcome {
            AttemptOutcome::WrittenOut { failed: None, .. } => {
                self.restarts = true;
                return true;
            }
            // What an earlier attempt has written out is still there.
            AttemptOutcome::NeverRan => return self.restarts,
            AttemptOutcome::WrittenOut { failed: Some(failed), .. } => failed.clone(),
            AttemptOutcome::Failed { message, .. } => message.clone(),
            AttemptOutcome::Ended { .. } => "the job was killed before".to_owned(),
            AttemptOutcome::Lost(LostBy::Reboot) => "the machine was down".to_owned(),
            AttemptOutcome::Lost(_) => "its shim was killed".to_owned(),
        };
        tracing::warn!("job {}: it was not written out, and begins anew: {failed}", self.number);
        self.write_out_failed = Some(failed);
        false
    }

    /// Returns why the job runs again after an attempt; `None` if the end is final.
    pub(crate) fn cause_of_another_run(&self, outcome: &AttemptOutcome) -> Option<PromiseChangeReason> {
        let is_lost = matches!(
            outcome,
            AttemptOutcome::Lost(_)
                | AttemptOutcome::WrittenOut { .. }
                | AttemptOutcome::Ended { by: Some(KilledBy::Shutdown), .. }
        );
        match self.run.as_ref().and_then(|run| run.ending) {
            Some(Ending::Requeued | Ending::Displaced | Ending::WrittenOut) => {
                Some(PromiseChangeReason::Requeued)
            }
            None if self.failure_to_retry(outcome).is_some() => Some(PromiseChangeReason::Retried),
            None if is_lost && self.submission.restartable => Some(PromiseChangeReason::Lost),
            None if *outcome == AttemptOutcome::NeverRan => Some(PromiseChangeReason::Lost),
            _ => None,
        }
    }

    /// Returns the final state of a job after the end of its attempt.
    pub(crate) fn final_phase(&self, now: Now, outcome: &AttemptOutcome) -> Phase {
        mark!("a final end");
        let started = self.started;
        // No job ends before its start, whatever the clock of an earlier boot was.
        let wall = |at: Time| now.wall_at(started.map_or(at, |started| at.max(started)));
        let start = started.map(wall);
        let cpu_ranges = self.run.as_ref().map(|run| number_ranges(&run.cpus)).unwrap_or_default();
        let is_ending = self.is_ending();
        match outcome {
            AttemptOutcome::Ended { at, exit, by: None } if !is_ending => {
                Phase::Done { start: start.unwrap_or(wall(*at)), end: wall(*at), exit: *exit, cpu_ranges }
            }
            AttemptOutcome::Ended { at, exit, by } => {
                let by = by.unwrap_or(KilledBy::User);
                Phase::Killed { start, end: wall(*at), by, exit: Some(*exit), cpu_ranges }
            }
            AttemptOutcome::WrittenOut { at, .. } => {
                Phase::Killed { start, end: wall(*at), by: KilledBy::User, exit: None, cpu_ranges }
            }
            // Also if it was ended before its command began.
            AttemptOutcome::Failed { at, .. } if is_ending => Phase::cancelled(wall(*at)),
            AttemptOutcome::Failed { at, why, message } => {
                Phase::Failed { at: wall(*at), why: *why, message: message.clone() }
            }
            AttemptOutcome::Lost(_) if is_ending => {
                Phase::Killed { start, end: now.wall, by: KilledBy::User, exit: None, cpu_ranges }
            }
            AttemptOutcome::Lost(why) => Phase::Lost { at: now.wall, why: *why },
            AttemptOutcome::NeverRan => Phase::cancelled(now.wall),
        }
    }
}
