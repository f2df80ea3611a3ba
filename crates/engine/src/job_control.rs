//! Requests that change jobs: cancel, hold, release and requeue.

use miserly_api::model::{JobIds, KilledBy, Phase, Problem, ProblemCode};
use miserly_core::{Effect, Round, State};

use crate::engine::problem;
use crate::requests::Handled;
use crate::{Attempt, Caller, DaemonReply, Ending, Engine, JobState, Journal, Launcher, Now};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Ends or withdraws a job; of an array, all of its unfinished jobs.
    pub(crate) fn cancel(&mut self, now: Now, caller: Caller, job: i64, array: bool) -> Handled {
        // What is due is played first: it may be the start of the job.
        let at = self.fresh(now)?;
        let jobs = if array { self.array_jobs(job) } else { vec![job] };
        for job in jobs.iter().chain(jobs.is_empty().then_some(&job)) {
            if let Err(problem) = self.owned_job(caller, *job) {
                return Ok(Err(problem));
            }
        }
        if jobs.is_empty() {
            let message = format!("job {job} is not the first of an array");
            return Ok(Err(problem(ProblemCode::Conflict, message)));
        }
        let mut round = Round::default();
        let mut over = vec![];
        for job in &jobs {
            if !self.end_run(*job, Ending::Cancelled) {
                over.push(*job);
                round.withdrawn.extend(self.jobs.handle(*job));
            }
        }
        if !round.is_empty() {
            self.play(now, at, round)?;
        }
        for job in over {
            let phase = Phase::Killed { start: None, end: now.wall, by: KilledBy::User, exit: None };
            self.finish(job, phase);
        }
        Ok(Ok(DaemonReply::JobIds(JobIds { jobs })))
    }

    fn array_jobs(&self, first: i64) -> Vec<i64> {
        let of_array = self.jobs.records().filter(|record| record.array.is_some_and(|(of, _)| of == first));
        of_array.map(|record| record.number).collect()
    }

    /// Ends the attempt of a job, if it has one. Returns whether it has. The job follows when the attempt has ended.
    fn end_run(&mut self, job: i64, ending: Ending) -> bool {
        let kill = self.kill(ending);
        let in_window = self.jobs.is_running(job);
        let Some(run) = self.jobs.get_mut(job).and_then(|record| record.run.as_mut()) else { return false };
        if run.ending == Some(Ending::Displaced) && !in_window {
            return false;
        }
        run.ending = Some(ending);
        // A repeated request sends the kill again, in case the first one was lost.
        self.batch.act(Attempt { job, nth: run.nth }, kill);
        self.batch.touch(job);
        true
    }

    /// Holds a waiting job. It gives up its window.
    pub(crate) fn hold(&mut self, now: Now, caller: Caller, job: i64) -> Handled {
        let at = self.fresh(now)?;
        let queued = match self.owned_job(caller, job) {
            Ok(record) if record.run.is_some() => return Ok(Err(already_runs(job))),
            Ok(record) => record.is_in_ledger(),
            Err(problem) => return Ok(Err(problem)),
        };
        if queued {
            let mut round = Round::default();
            round.withdrawn.extend(self.jobs.handle(job));
            self.play(now, at, round)?;
        }
        if let Some(record) = self.jobs.get_mut(job) {
            record.state = JobState::Held;
            record.entry = None;
            record.promises.clear();
        }
        self.dependencies.untrack(job);
        self.batch.touch(job);
        Ok(Ok(DaemonReply::JobIds(JobIds { jobs: vec![job] })))
    }

    /// Releases a held job, as if it were submitted now.
    pub(crate) fn release(&mut self, now: Now, caller: Caller, job: i64) -> Handled {
        let at = self.fresh(now)?;
        match self.owned_job(caller, job) {
            Ok(record) if record.state == (JobState::Held) => {}
            Ok(_) => return Ok(Err(problem(ProblemCode::Conflict, format!("job {job} is not held")))),
            Err(problem) => return Ok(Err(problem)),
        }
        let mut round = Round::default();
        if let Some(mut record) = self.jobs.remove(job) {
            record.state = JobState::Deferred;
            self.enter(at, record, &mut round);
        }
        if !round.is_empty() {
            let effects = self.play(now, at, round)?;
            if effects.iter().any(|(of, effect)| *of == job && matches!(effect, Effect::Refused { .. })) {
                let message = format!("job {job} has no window any more, and is over");
                return Ok(Err(problem(ProblemCode::Refused, message)));
            }
        }
        Ok(Ok(DaemonReply::JobIds(JobIds { jobs: vec![job] })))
    }

    /// Ends a running job and runs it again from the beginning.
    pub(crate) fn requeue(&mut self, caller: Caller, job: i64) -> Result<DaemonReply, Problem> {
        let runs = self.owned_job(caller, job)?.run.as_ref().is_some_and(|run| run.ending.is_none());
        if !runs {
            let message = format!("job {job} does not run, so there is nothing to run again");
            return Err(problem(ProblemCode::Conflict, message));
        }
        self.end_run(job, Ending::Requeued);
        Ok(DaemonReply::JobIds(JobIds { jobs: vec![job] }))
    }

    /// Returns whether a job waits in a ledger.
    pub(crate) fn is_waiting(&self, job: i64) -> bool {
        let handle = self.jobs.handle(job);
        let entry = handle.and_then(|handle| self.system.ledger_of(handle)?.get(handle));
        entry.is_some_and(|entry| entry.state == State::Waiting)
    }
}

fn already_runs(job: i64) -> Problem {
    let message = format!("job {job} has begun to run; `miserly requeue` ends it and runs it again");
    problem(ProblemCode::Conflict, message)
}
