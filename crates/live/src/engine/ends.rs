//! The ends of processes, and what they mean for the jobs.

use miserly_core::{EndHow, Ended, Round, Span, State, Time, span_of_work};

use super::{Action, Attempt, Ending, Engine, Hands, Outcome, Record, Stands};
use crate::clock::Now;
use crate::model::{KilledBy, Phase};

impl Outcome {
    /// When it ended, if that is known.
    pub(super) fn at(&self) -> Option<Time> {
        match self {
            Outcome::Ended { at, .. } | Outcome::Failed { at, .. } => Some(*at),
            Outcome::Lost(_) | Outcome::NeverRan => None,
        }
    }

    fn how(&self) -> EndHow {
        match self {
            Outcome::Ended { by: None, .. } | Outcome::Failed { .. } => EndHow::Done,
            Outcome::Ended { by: Some(KilledBy::Time), .. } => EndHow::KilledAtEstimate,
            Outcome::Ended { .. } | Outcome::Lost(_) | Outcome::NeverRan => EndHow::Cancelled,
        }
    }
}

impl<H: Hands> Engine<H> {
    /// An attempt is over, which is told to the system in this round.
    pub(super) fn over(
        &mut self,
        now: Now,
        at: Time,
        attempt: Attempt,
        outcome: &Outcome,
        round: &mut Round,
    ) {
        let number = attempt.job;
        let has_window = self.has_window_left(at, number);
        let Some(record) = self.records.get_mut(&number) else { return self.forget(attempt) };
        let Some(run) = record.run.as_ref().filter(|run| run.nth == attempt.nth) else {
            return self.forget(attempt);
        };
        let ending = run.ending;
        match (ending, outcome) {
            (Some(Ending::Displaced), _) => {
                record.run = None;
                self.forget(attempt);
                if self.running.contains(&number) {
                    self.begin_window(at, number);
                }
            }
            (None, Outcome::NeverRan) if has_window => self.start_again(number, attempt),
            (None, Outcome::NeverRan) | (Some(Ending::Requeued), _) => {
                self.resubmit(at, number, attempt, outcome, round);
            }
            (None, Outcome::Lost(_)) if record.submission.restartable => {
                self.resubmit(at, number, attempt, outcome, round);
            }
            (_, outcome) => {
                let phase = record.last_phase(now, outcome);
                self.note_away(number, outcome.at().unwrap_or(at));
                self.leave(number, outcome, round);
                self.finish(number, phase);
            }
        }
    }

    fn forget(&mut self, attempt: Attempt) {
        self.turn.actions.push((attempt, Action::Forget));
    }

    /// Whether a job that has not run yet can still have its window: one that lost more of it than the grace at its end, which
    /// no job may count on, would be ended early. So it is with one whose daemon was killed between its start and its launch.
    fn has_window_left(&self, at: Time, number: i64) -> bool {
        let (Some(end), Some(record)) = (self.window_end(number), self.records.get(&number)) else {
            return !self.running.contains(&number);
        };
        let lost = at + Span::from_ticks(record.time) - end;
        lost <= record.grace(self.setup.grace)
    }

    /// It was to run and nothing of it ever did: once more, where it was to be.
    fn start_again(&mut self, number: i64, attempt: Attempt) {
        self.forget(attempt);
        let end = self.window_end(number);
        let Some(record) = self.records.get_mut(&number) else { return };
        let Some(run) = record.run.take() else { return };
        let end = if run.critical { end } else { None };
        self.launch(number, run.cpus, end);
    }

    /// How long it did not run since it started, as of its end: what is missing of the work that it could have done.
    fn note_away(&mut self, number: i64, at: Time) {
        let Some(job) = self.handles.get(&number) else { return };
        let Some(entry) = self.system.ledger_of(*job).and_then(|ledger| ledger.get(*job)) else { return };
        let ran = span_of_work(entry.done(at) + entry.filled(at), entry.request.procs());
        let Some(record) = self.records.get_mut(&number) else { return };
        let Some(started) = record.started else { return };
        let away = at - Time::from_ticks(started) - ran;
        record.away = (away > Span::ZERO).then_some(away.ticks());
    }

    /// It leaves the system.
    fn leave(&mut self, number: i64, outcome: &Outcome, round: &mut Round) {
        let Some(job) = self.handles.get(&number).copied() else { return };
        let Some(entry) = self.system.ledger_of(job).and_then(|ledger| ledger.get(job)) else { return };
        if entry.state == State::Waiting && entry.filling.procs.is_zero() {
            round.withdrawn.push(job);
        } else {
            round.ended.push(Ended { job, how: outcome.how() });
        }
    }

    /// It leaves the system and comes back as one that has just been submitted.
    fn resubmit(&mut self, at: Time, number: i64, attempt: Attempt, outcome: &Outcome, round: &mut Round) {
        self.leave(number, outcome, round);
        self.forget(attempt);
        self.running.remove(&number);
        let Some(record) = self.records.get_mut(&number) else { return };
        if let Some(run) = record.run.take() {
            self.cpus.give(&run.cpus);
        }
        record.started = None;
        record.told.clear();
        record.stands = Stands::Back { held: false };
        self.handles.remove(&number);
        self.submit_record(at, number, round);
    }
}

impl Record {
    /// Where a job stands whose processes have ended so.
    fn last_phase(&self, now: Now, outcome: &Outcome) -> Phase {
        let wall = |at: Time| now.wall_at(at);
        let start = self.started.map(|at| wall(Time::from_ticks(at)));
        match outcome {
            Outcome::Ended { at, exit, by: None }
                if self.run.as_ref().is_none_or(|run| run.ending.is_none()) =>
            {
                Phase::Done { start: start.unwrap_or(wall(*at)), end: wall(*at), exit: *exit }
            }
            Outcome::Ended { at, exit, by } => {
                let by = by.unwrap_or(KilledBy::User);
                Phase::Killed { start, end: wall(*at), by, exit: Some(*exit) }
            }
            // Also one that was ended before its command had begun.
            Outcome::Failed { at, .. } if self.run.as_ref().is_some_and(|run| run.ending.is_some()) => {
                Phase::Killed { start: None, end: wall(*at), by: KilledBy::User, exit: None }
            }
            Outcome::Failed { at, why, message } => {
                Phase::Failed { at: wall(*at), why: *why, message: message.clone() }
            }
            Outcome::Lost(why) => Phase::Lost { at: now.wall, why: *why },
            Outcome::NeverRan => Phase::Killed { start: None, end: now.wall, by: KilledBy::User, exit: None },
        }
    }

    /// Until when it is kept back, if that is known.
    pub(super) fn back_until(&self) -> Option<Time> {
        self.begin_alone().filter(|_| self.stands == Stands::Back { held: false })
    }

    /// When it may begin, if it waits for no other job: from always on, where its user did not say.
    pub(super) fn begin_alone(&self) -> Option<Time> {
        self.after.is_empty().then(|| Time::from_ticks(self.begin.unwrap_or(i64::MIN)))
    }

    /// How long it may run on.
    pub(super) fn left(&self, now: Time) -> Span {
        self.entry.as_ref().map_or(Span::ZERO, |entry| entry.entry().left(now, self.submission.cpus.into()))
    }

    /// For how long its resources are planned: its time, and until it is gone for certain.
    pub(super) fn planned(&self, today: Span) -> Span {
        Span::from_ticks(self.time) + self.handover(today)
    }

    /// How long its resources are kept after its window: as it was planned, or, before that, as it would be today.
    pub(super) fn handover(&self, today: Span) -> Span {
        self.handover.map_or(today, Span::from_ticks)
    }
    /// How long it has to end by itself once it is asked to: a short window is not all grace.
    pub(super) fn grace(&self, most: Span) -> Span {
        most.min(Span::from_ticks(self.time / 10))
    }
}
