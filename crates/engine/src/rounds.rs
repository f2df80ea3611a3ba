//! Rounds: all events of one instant, applied to the system at that instant.

use std::sync::Arc;

use miserly_api::model::OverdueCause;
use miserly_core::{Effect, Entry, JobId, Round, Time};
use miserly_marks::mark;

use crate::dependency::expected_ends::{expected_end, overdue_since, start_rank};
use crate::{
    Action, Attempt, AttemptOutcome, EffectLine, Engine, EngineError, Journal, Launcher, Now, RoundLine,
    SavedEntry,
};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Returns the instant of the next round: now, or one tick after the last round.
    ///
    /// Everything that is due by then is played before. So no two rounds share an instant, and the journal orders them.
    pub(crate) fn fresh(&mut self, now: Now) -> Result<Time, EngineError> {
        loop {
            let at = self.values.next_instant(now.ticks);
            if self.next_due().is_none_or(|due| due > at) {
                return Ok(at);
            }
            self.play_due(Now { ticks: at, wall: now.wall_at(at) }, vec![])?;
        }
    }

    /// Plays everything that was due until now, and the ends of attempts, each at its instant.
    ///
    /// Instants never decrease: an event that is older than the last round is played one tick after that round.
    pub(crate) fn play_due(
        &mut self,
        now: Now,
        ends: Vec<(Time, Attempt, AttemptOutcome)>,
    ) -> Result<(), EngineError> {
        let mut ends = ends.into_iter().peekable();
        let mut fault = None;
        loop {
            let end = ends.peek().map(|(at, ..)| *at);
            let due = self.next_due().into_iter().chain(end).min();
            let Some(at) = due.filter(|at| *at <= now.ticks) else { break };
            let at = self.values.next_instant(at);
            let mut round = Round::default();
            while let Some((_, attempt, outcome)) = ends.next_if(|(when, ..)| *when <= at) {
                self.end_attempt(now, at, attempt, &outcome, &mut round);
            }
            self.give_up_late(now, at, &mut round);
            self.find_overdue(at, &mut round);
            // First, so that no job starts at the expected end of a job that has not ended.
            self.update_dependencies(now, at, &mut round)?;
            self.submit_due(at, &mut round);
            fault = fault.or(round.fault);
            self.play(now, at, round)?;
        }
        if fault.is_some() {
            self.settle_dependencies(now, fault)?;
        }
        Ok(())
    }

    /// Adds to the round the running jobs past their expected ends, except those whose windows move in it.
    pub(crate) fn find_overdue(&self, at: Time, round: &mut Round) {
        for number in self.jobs.ending_by(at) {
            let Some(job) = self.jobs.handle(number) else { continue };
            let goes_on = round.amended.iter().any(|amended| amended.job == job);
            if !goes_on && !round.ended.iter().any(|ended| ended.job == job) {
                mark!("a job is overdue");
                round.overdue.push(job);
            }
        }
    }

    /// Ends overdue jobs by force.
    fn end_overdue(&mut self, overdue: &[JobId]) {
        for job in overdue {
            let record = self.jobs.number(*job).and_then(|number| self.jobs.get(number));
            let Some(record) = record else { continue };
            let by_running_time = self.is_gang(&record.queue);
            if let Some(attempt) = record.attempt() {
                mark!("an overdue job is ended");
                self.batch.act(attempt, Action::EndOverdue { by_running_time });
            }
        }
    }

    /// Records why an attempt does not end although it shall.
    pub(crate) fn record_overdue(&mut self, attempt: Attempt, cause: OverdueCause) {
        let Some(run) = self.jobs.run_mut(attempt.job).filter(|run| run.nth == attempt.nth) else { return };
        if run.overdue.as_ref() != Some(&cause) {
            mark!("why an attempt does not end");
            run.overdue = Some(cause);
            self.batch.touch(attempt.job);
        }
    }

    /// Records since when an attempt is idle.
    pub(crate) fn record_idle(&mut self, attempt: Attempt, since: Option<Time>) {
        let Some(run) = self.jobs.run_mut(attempt.job).filter(|run| run.nth == attempt.nth) else { return };
        if run.idle_since != since {
            mark!("an attempt is idle, or active again");
            run.idle_since = since;
            self.batch.touch(attempt.job);
        }
    }

    /// Plays a round now.
    pub(crate) fn play_now(&mut self, now: Now, round: Round) -> Result<Vec<(i64, Effect)>, EngineError> {
        let at = self.fresh(now)?;
        self.play(now, at, round)
    }

    /// Plays a round and applies its effects to the jobs.
    pub(crate) fn play(
        &mut self,
        now: Now,
        at: Time,
        mut round: Round,
    ) -> Result<Vec<(i64, Effect)>, EngineError> {
        self.values.advance(at);
        round.ended.sort_by_key(|ended| {
            self.system.ledger_of(ended.job).map(|ledger| start_rank(ledger.entry(ended.job)))
        });
        let mut line = RoundLine::new(at, now.wall, &round, |job| self.number(job));
        let gone: Vec<JobId> =
            round.ended.iter().map(|ended| ended.job).chain(round.withdrawn.iter().copied()).collect();
        let overdue = round.overdue.clone();
        let mut effects = vec![];
        self.system.round(at, &mut round, &mut effects)?;
        // A job that only outlived its prediction has a later one by now, and runs on.
        let is_overdue = |job: &JobId| {
            let entry = self.system.ledger_of(*job).and_then(|ledger| ledger.get(*job));
            entry.is_none_or(|entry| overdue_since(entry).is_some())
        };
        let overdue: Vec<JobId> = overdue.into_iter().filter(is_overdue).collect();
        self.end_overdue(&overdue);
        let effects: Vec<(i64, Effect)> =
            effects.into_iter().map(|effect| (self.number(effect.job()), effect)).collect();
        line.effects = effects.iter().map(|(number, effect)| EffectLine::new(effect, *number)).collect();
        self.batch.round(line);
        self.save_entries();
        for job in gone {
            self.jobs.handles_mut().free(job);
        }
        for (number, effect) in &effects {
            self.apply_effect(now, at, *number, *effect);
        }
        self.fill_up(at);
        self.remove_expired(now)?;
        Ok(effects)
    }

    /// Removes the jobs that started although their deadline had passed.
    fn remove_expired(&mut self, now: Now) -> Result<(), EngineError> {
        let mut round = Round::default();
        for number in std::mem::take(&mut self.batch.expired) {
            mark!("a job expires at its start");
            self.kill_early_run(number);
            self.expire(now, number, &mut round);
        }
        if !round.is_empty() {
            self.play(now, self.values.next_instant(self.values.last_instant()), round)?;
        }
        Ok(())
    }

    /// Copies the ledger entries that changed into the records.
    pub(crate) fn save_entries(&mut self) {
        let mut moved = vec![];
        for queue in self.system.queues_mut() {
            for job in queue.ledger_mut().take_touched() {
                let Some(number) = self.jobs.number(job) else { continue };
                self.dependencies.note_change(number);
                // A job that was requeued in this round has another handle now.
                match self.jobs.handle(number) {
                    Some(other) if other != job => {
                        mark!("a job has another handle in the same round");
                        continue;
                    }
                    None => {
                        self.jobs.set_expected_end(number, None);
                        continue;
                    }
                    Some(_) => {}
                }
                let entry = queue.ledger().get(job);
                self.jobs.set_expected_end(number, entry.and_then(expected_end));
                moved.push(number);
                let entry = entry.map(SavedEntry::new);
                if self.jobs.get(number).is_none_or(|record| record.entry.as_deref() == entry.as_ref()) {
                    continue;
                }
                let Some(record) = self.jobs.get_mut(number) else { continue };
                let entry = entry.map(Arc::new);
                let before = std::mem::replace(&mut record.entry, entry);
                let only_earlier = match (before, &record.entry) {
                    (Some(before), Some(now)) => before.differs_in_earlier_promise(now),
                    _ => false,
                };
                if only_earlier && record.promise.only_improves() {
                    self.batch.touch_promise(number);
                } else {
                    self.batch.touch(number);
                }
            }
        }
        for number in moved {
            self.watch_overrun(number);
        }
    }

    /// Returns the instant since which a job is overdue.
    pub(crate) fn overdue_since(&self, number: i64) -> Option<Time> {
        overdue_since(self.entry(number)?)
    }

    /// Returns the entry of a job in the ledger of its queue.
    pub(crate) fn entry(&self, number: i64) -> Option<&Entry> {
        let job = self.jobs.handle(number)?;
        self.system.ledger_of(job)?.get(job)
    }

    /// Returns the number of the job with a handle.
    pub(crate) fn number(&self, job: JobId) -> i64 {
        self.jobs.number(job).unwrap_or_default()
    }
}
