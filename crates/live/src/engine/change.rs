//! Changes of jobs that were accepted.

use miserly_core::{Amendment, Change, Effect, Round, Span, State, Time};
use miserly_units::duration;

use super::asks::Asked;
use super::submit::{most_time, span_of};
use super::{Action, Attempt, Ending, Engine, EngineError, Hands, Record, Stands, problem};
use crate::clock::Now;
use crate::model::{Handed, KilledBy, Phase, Problem, ProblemCode};
use crate::service::{Caller, Reply};

impl<H: Hands> Engine<H> {
    /// Ends a job, or takes it back; of an array, all that is left of it.
    pub(super) fn cancel(&mut self, now: Now, caller: Caller, job: i64, array: bool) -> Asked {
        // What is due is played first: it may be the start of the job.
        let at = self.fresh(now)?;
        let jobs: Vec<i64> = if array {
            let of = |record: &&Record| record.array.is_some_and(|(first, _)| first == job);
            self.records.values().filter(of).map(|record| record.number).collect()
        } else {
            vec![job]
        };
        for job in jobs.iter().chain(jobs.is_empty().then_some(&job)) {
            if let Err(problem) = self.own(caller, *job) {
                return Ok(Err(problem));
            }
        }
        if jobs.is_empty() {
            return Ok(Err(problem(
                ProblemCode::Conflict,
                format!("job {job} is not the first of an array"),
            )));
        }
        let mut round = Round::default();
        let mut over = vec![];
        for job in &jobs {
            if self.end_processes(*job, Ending::Cancelled) {
                continue;
            }
            over.push(*job);
            if let Some(handle) = self.handles.get(job).copied() {
                round.withdrawn.push(handle);
            }
        }
        if !round.is_empty() {
            self.play(now, at, round)?;
        }
        for job in over {
            let phase = Phase::Killed { start: None, end: now.wall, by: KilledBy::User, exit: None };
            self.finish(job, phase);
        }
        Ok(Ok(Reply::Handed(Handed { jobs })))
    }

    /// Has a job's processes ended, if it has any; the rest follows when they are gone.
    fn end_processes(&mut self, job: i64, ending: Ending) -> bool {
        let kill = self.kill(ending);
        let Some(record) = self.records.get_mut(&job) else { return false };
        let in_window = self.running.contains(&job);
        match &mut record.run {
            Some(run) if run.ending != Some(Ending::Displaced) || in_window => {
                run.ending = Some(ending);
                let attempt = Attempt { job, nth: run.nth };
                self.turn.touched.insert(job);
                // Perhaps once more: the first time may not have been heard.
                self.turn.actions.push((attempt, kill));
                true
            }
            _ => false,
        }
    }

    /// Keeps a waiting job from running. It gives up its window.
    pub(super) fn hold(&mut self, now: Now, caller: Caller, job: i64) -> Asked {
        let at = self.fresh(now)?;
        let stands = match self.own(caller, job) {
            Ok(record) if record.run.is_some() => return Ok(Err(runs(job))),
            Ok(record) => record.stands.clone(),
            Err(problem) => return Ok(Err(problem)),
        };
        if stands == Stands::In {
            let mut round = Round::default();
            round.withdrawn.extend(self.handles.get(&job));
            self.play(now, at, round)?;
        }
        if let Some(record) = self.records.get_mut(&job) {
            record.stands = Stands::Back { held: true };
            record.entry = None;
            record.told.clear();
        }
        self.tied.remove(&job);
        self.turn.touched.insert(job);
        Ok(Ok(Reply::Handed(Handed { jobs: vec![job] })))
    }

    /// Lets a held job run again: as one that has just been submitted.
    pub(super) fn release(&mut self, now: Now, caller: Caller, job: i64) -> Asked {
        let at = self.fresh(now)?;
        match self.own(caller, job) {
            Ok(record) if record.stands == (Stands::Back { held: true }) => {}
            Ok(_) => return Ok(Err(problem(ProblemCode::Conflict, format!("job {job} is not held")))),
            Err(problem) => return Ok(Err(problem)),
        }
        let mut round = Round::default();
        if let Some(mut record) = self.records.remove(&job) {
            record.stands = Stands::Back { held: false };
            self.enter(at, record, &mut round);
        }
        if !round.is_empty() {
            let effects = self.play(now, at, round)?;
            if effects.iter().any(|(of, effect)| *of == job && matches!(effect, Effect::Refused { .. })) {
                let told = format!("job {job} has no window any more, and is over");
                return Ok(Err(problem(ProblemCode::Refused, told)));
            }
        }
        Ok(Ok(Reply::Handed(Handed { jobs: vec![job] })))
    }

    /// Ends a running job and runs it again from the beginning, in its turn.
    pub(super) fn requeue(&mut self, caller: Caller, job: i64) -> Result<Reply, Problem> {
        let runs = self.own(caller, job)?.run.as_ref().is_some_and(|run| run.ending.is_none());
        if !runs {
            let told = format!("job {job} does not run, so there is nothing to run again");
            return Err(problem(ProblemCode::Conflict, told));
        }
        self.end_processes(job, Ending::Requeued);
        Ok(Reply::Handed(Handed { jobs: vec![job] }))
    }

    /// Makes a job's window longer, if no promise breaks: that is tried first, on a copy.
    pub(super) fn extend(&mut self, now: Now, caller: Caller, job: i64, by: f64) -> Asked {
        let at = self.fresh(now)?;
        let record = match self.own(caller, job) {
            Ok(record) => record,
            Err(problem) => return Ok(Err(problem)),
        };
        let Some(longer) = span_of(by).filter(|longer| *longer > Span::ZERO) else {
            return Ok(Err(Problem::with_field(
                "by",
                "a window is made longer by a number of seconds above 0",
            )));
        };
        let time = Span::from_ticks(record.time) + longer;
        if let Err(problem) = self.within_bounds(at, record, longer) {
            return Ok(Err(problem));
        }
        let Some(handle) = self.handles.get(&job).copied() else {
            self.lengthen(job, time);
            return Ok(self.view_of(now, job));
        };
        // Not its time: where its window began with no daemon there, the ledger has what was left of it.
        let Some(planned) = self.system.ledger_of(handle).map(|ledger| ledger.request(handle).estimate)
        else {
            return Ok(Err(super::asks::no_job(job)));
        };
        let change = Change::Estimate(planned + longer);
        let amendment = Amendment { job: handle, change };
        if let Err(problem) = self.try_to_amend(at, job, amendment)? {
            return Ok(Err(problem));
        }
        let mut round = Round::default();
        round.amended.push(amendment);
        self.play(now, at, round)?;
        self.lengthen(job, time);
        Ok(self.view_of(now, job))
    }

    /// Whether a job may have so much more time in its queue, and a window that ends so much later.
    fn within_bounds(&self, at: Time, record: &Record, longer: Span) -> Result<(), Problem> {
        let Some(queue) = self.setup.queues.iter().find(|queue| queue.name == record.queue) else {
            return Ok(());
        };
        let (job, time, most) = (record.number, Span::from_ticks(record.time) + longer, most_time(queue));
        if time > most {
            let told = format!(
                "job {job} would run for {}: its queue allows at most {}",
                duration(time),
                duration(most)
            );
            return Err(problem(ProblemCode::Refused, told));
        }
        let end = self.end_of(job, at).unwrap_or(at) + longer;
        match queue.policy.horizon().filter(|horizon| end > at + *horizon) {
            None => Ok(()),
            Some(horizon) => {
                let told = format!(
                    "job {job} would end beyond the horizon of its queue, {} from now",
                    duration(horizon)
                );
                Err(problem(ProblemCode::Refused, told))
            }
        }
    }

    /// Whether no promise would break, and whose would.
    fn try_to_amend(
        &self,
        at: Time,
        job: i64,
        amendment: Amendment,
    ) -> Result<Result<(), Problem>, EngineError> {
        let Some(queue) = self.system.queue_of(amendment.job) else { return Ok(Ok(())) };
        let mut trial = self.trial(queue);
        let mut round = Round::default();
        round.amended.push(amendment);
        let mut effects = vec![];
        trial.round(at, &mut round, &mut effects)?;
        let broken = effects.iter().find_map(|effect| match effect {
            Effect::PromiseBroken { job, .. } => Some(self.number(*job)),
            _ => None,
        });
        Ok(match broken {
            None => Ok(()),
            Some(other) => {
                let told =
                    format!("job {job} cannot have a longer window: the promise to job {other} would break");
                Err(Problem { job: Some(other), ..problem(ProblemCode::Refused, told) })
            }
        })
    }

    fn lengthen(&mut self, job: i64, time: Span) {
        let end = self.window_end(job);
        let in_turns = self.records.get(&job).is_some_and(|record| self.takes_turns(&record.queue));
        let Some(record) = self.records.get_mut(&job) else { return };
        record.time = time.ticks();
        self.turn.touched.insert(job);
        let told = if in_turns { Some(Action::RunFor(record.limit())) } else { end.map(Action::EndAt) };
        if let (Some(told), Some(run)) = (told, &record.run) {
            self.turn.actions.push((Attempt { job, nth: run.nth }, told));
        }
    }

    fn view_of(&self, now: Now, job: i64) -> Result<Reply, Problem> {
        let record = self.records.get(&job).ok_or_else(|| super::asks::no_job(job))?;
        Ok(Reply::Job(Box::new(self.view(now, record))))
    }

    /// Whether the job waits in the ledger.
    pub(super) fn waits(&self, job: i64) -> bool {
        let handle = self.handles.get(&job);
        let entry = handle.and_then(|handle| self.system.ledger_of(*handle)?.get(*handle));
        entry.is_some_and(|entry| entry.state == State::Waiting)
    }
}

fn runs(job: i64) -> Problem {
    problem(
        ProblemCode::Conflict,
        format!("job {job} has begun to run; `miserly requeue` ends it and runs it again"),
    )
}
