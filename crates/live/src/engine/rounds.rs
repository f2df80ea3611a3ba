//! Rounds: what happens is told to the system at the instant at which it happened.

use miserly_core::{Effect, Expected, JobId, Round, Span, State, Submission, Time};

use super::{
    Attempt, Engine, EngineError, Hands, JournalLine, Outcome, Record, RoundLine, SavedEntry, Stands,
};
use crate::clock::Now;

impl<H: Hands> Engine<H> {
    /// The instant of the next round: now, or a tick after the last one. All that is due by then is played before, so that no two
    /// rounds have an instant in common: what is written down says what came first.
    pub(super) fn fresh(&mut self, now: Now) -> Result<Time, EngineError> {
        loop {
            let at = now.ticks.max(self.last + Span::TICK);
            if self.next_due().is_none_or(|due| due > at) {
                return Ok(at);
            }
            self.play_due(Now { ticks: at, wall: now.wall_at(at) }, vec![])?;
        }
    }

    /// Plays all that was due up to now, and the ends of processes, each at its instant. An instant never goes back: what
    /// comes to be known later than something that was played is played then.
    pub(super) fn play_due(
        &mut self,
        now: Now,
        overs: Vec<(Time, Attempt, Outcome)>,
    ) -> Result<(), EngineError> {
        let mut overs = overs.into_iter().peekable();
        loop {
            let over = overs.peek().map(|(at, ..)| *at);
            let due = self.next_due().into_iter().chain(over).min();
            let Some(at) = due.filter(|at| *at <= now.ticks) else { return Ok(()) };
            let at = at.max(self.last + Span::TICK);
            let mut round = Round::default();
            while let Some((_, attempt, outcome)) = overs.next_if(|(when, ..)| *when <= at) {
                self.over(now, at, attempt, &outcome, &mut round);
            }
            self.find_overdue(at, &mut round);
            // Before anybody starts at the end of a job that has not ended.
            self.loosen(at, &mut round);
            self.bring_in(at, &mut round);
            self.play(now, at, round)?;
        }
    }

    /// Jobs that should have ended by now, and that are not known to have.
    pub(super) fn find_overdue(&self, at: Time, round: &mut Round) {
        for number in &self.running {
            let Some(job) = self.handles.get(number) else { continue };
            let gone = round.ended.iter().any(|ended| ended.job == *job);
            if !gone && self.expected_end(*number).is_some_and(|end| end <= at) {
                round.overdue.push(*job);
            }
        }
    }

    /// Jobs that were kept back until now.
    pub(super) fn bring_in(&mut self, at: Time, round: &mut Round) {
        let due = |record: &&Record| record.back_until().is_some_and(|until| until <= at);
        let due: Vec<i64> = self
            .tied
            .iter()
            .filter_map(|number| self.records.get(number))
            .filter(due)
            .map(|r| r.number)
            .collect();
        for number in due {
            self.submit_record(at, number, round);
        }
    }

    /// Hands a job that was kept back to the system.
    pub(super) fn submit_record(&mut self, at: Time, number: i64, round: &mut Round) {
        let Some(record) = self.records.get(&number) else { return };
        let begin = self.begin_of(record, at);
        let of = |queue: &super::Queue| queue.name == record.queue;
        // Whoever sets the queues up has looked for those of all jobs.
        let Some(queue) = self.setup.queues.iter().position(of) else { return };
        let job = self.new_handle(number);
        let Some(record) = self.records.get_mut(&number) else { return };
        record.stands = Stands::In;
        record.handover = Some(self.setup.handover.ticks());
        let request = record.request(&self.setup, queue, at, begin);
        self.tied.remove(&number);
        if !record.after.is_empty() {
            self.tied.insert(number);
        }
        self.turn.touched.insert(number);
        round.submitted.push(Submission { job, request });
    }

    /// Plays a round now.
    pub(super) fn play_now(&mut self, now: Now, round: Round) -> Result<Vec<(i64, Effect)>, EngineError> {
        let at = self.fresh(now)?;
        self.play(now, at, round)
    }

    /// Plays a round, if anything happened in it or something was due, and takes in what comes of it.
    pub(super) fn play(
        &mut self,
        now: Now,
        at: Time,
        mut round: Round,
    ) -> Result<Vec<(i64, Effect)>, EngineError> {
        self.last = at;
        round
            .ended
            .sort_by_key(|ended| self.system.ledger_of(ended.job).map(|ledger| start_of(ledger, ended.job)));
        let mut line = RoundLine::of(at, now.wall.as_microsecond(), &round, |job| self.number(job));
        let gone: Vec<JobId> =
            round.ended.iter().map(|ended| ended.job).chain(round.withdrawn.iter().copied()).collect();
        let mut effects = vec![];
        self.system.round(at, &mut round, &mut effects)?;
        let effects: Vec<(i64, Effect)> =
            effects.into_iter().map(|effect| (self.number(effect.job()), effect)).collect();
        line.effects =
            effects.iter().map(|(number, effect)| super::EffectLine::of(effect, *number)).collect();
        self.turn.lines.push(json(&JournalLine::Round(Box::new(line))));
        self.note_changes();
        for job in gone {
            self.drop_handle(job);
        }
        for (number, effect) in &effects {
            self.take_in(now, at, *number, *effect);
        }
        Ok(effects)
    }

    /// Keeps in the records how the ledgers have changed.
    fn note_changes(&mut self) {
        for queue in self.system.queues_mut() {
            for job in queue.ledger_mut().take_touched() {
                let Some(number) = self.numbers.get(job.index()).copied().flatten() else { continue };
                // One that left and came back in one round goes by another handle now.
                if self.handles.get(&number) != Some(&job) {
                    continue;
                }
                let Some(record) = self.records.get_mut(&number) else { continue };
                record.entry = queue.ledger().get(job).map(SavedEntry::of);
                self.turn.touched.insert(number);
            }
        }
    }

    /// When a job that runs should be over, resources and all; nothing, if that is past already.
    pub(super) fn expected_end(&self, number: i64) -> Option<Time> {
        let job = self.handles.get(&number)?;
        match self.system.ledger_of(*job)?.entry(*job).state {
            State::Running { expected: Expected::At(end), .. } => Some(end),
            _ => None,
        }
    }

    /// The number of the job that has this handle.
    pub(super) fn number(&self, job: JobId) -> i64 {
        self.numbers.get(job.index()).copied().flatten().unwrap_or_default()
    }

    /// A handle that no job has, for this one.
    pub(super) fn new_handle(&mut self, number: i64) -> JobId {
        let free =
            self.numbers.iter().position(Option::is_none).filter(|_| self.handles.len() < self.numbers.len());
        let index = free.unwrap_or_else(|| {
            self.numbers.push(None);
            self.numbers.len() - 1
        });
        self.numbers[index] = Some(number);
        // More jobs than that do not fit in any memory.
        let job = JobId(u32::try_from(index).unwrap_or(u32::MAX));
        self.handles.insert(number, job);
        job
    }

    pub(super) fn drop_handle(&mut self, job: JobId) {
        if let Some(number) = self.numbers.get_mut(job.index()).and_then(Option::take)
            && self.handles.get(&number) == Some(&job)
        {
            self.handles.remove(&number);
        }
    }
}

/// When a job started, and its rank: the order in which ends of one instant are told.
fn start_of(ledger: &miserly_core::Ledger, job: JobId) -> (Time, u64) {
    let entry = ledger.entry(job);
    match entry.state {
        State::Running { start, .. } | State::Suspended { start, .. } => (start, entry.admitted),
        State::Waiting => (Time::MAX, entry.admitted),
    }
}

pub(super) fn json(line: &JournalLine) -> String {
    // Maps with odd keys are all that cannot be written, and there are none.
    serde_json::to_string(line).unwrap_or_default()
}
