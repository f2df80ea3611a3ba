//! Requests that change jobs: cancel, hold, release and requeue.

use miserly_api::model::{JobIds, KilledBy, Phase, Problem, ProblemCode};
use miserly_core::{Effect, Round, State};

use crate::requests::Handled;
use crate::{Attempt, Caller, DaemonReply, Ending, Engine, JobState, Journal, Launcher, Now, PromiseCause};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Ends or withdraws a job; of an array, all of its unfinished jobs.
    pub(crate) fn cancel(&mut self, now: Now, caller: Caller, job: i64, array: bool) -> Handled {
        // What is due is played first: it may be the start of the job.
        let at = self.fresh(now)?;
        let jobs = if array { self.array_jobs(job) } else { vec![job] };
        for job in jobs.iter().chain(jobs.is_empty().then_some(&job)) {
            self.owned_job(caller, *job)?;
        }
        if jobs.is_empty() {
            let message = format!("job {job} is not the first of an array");
            return Err(Problem::new(ProblemCode::Conflict, message).into());
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
        Ok(DaemonReply::JobIds(JobIds { jobs }))
    }

    fn array_jobs(&self, first: i64) -> Vec<i64> {
        let of_array =
            self.jobs.records().filter(|record| record.array.is_some_and(|array| array.first == first));
        of_array.map(|record| record.number).collect()
    }

    /// Ends the attempt of a job, if it has one. Returns whether it has. The job follows when the attempt has ended.
    fn end_run(&mut self, job: i64, ending: Ending) -> bool {
        let kill = self.kill(ending);
        let in_window = self.jobs.is_running(job);
        let Some(run) = self.jobs.run_mut(job) else { return false };
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
        let record = self.owned_job(caller, job)?;
        if record.run.is_some() {
            let message = format!("job {job} has begun to run; `miserly requeue` ends it and runs it again");
            return Err(Problem::new(ProblemCode::Conflict, message).into());
        }
        if record.is_in_ledger() {
            let mut round = Round::default();
            round.withdrawn.extend(self.jobs.handle(job));
            self.play(now, at, round)?;
        }
        if let Some(record) = self.jobs.get_mut(job) {
            record.state = JobState::Held;
            record.entry = None;
            record.promise.give_up(&mut self.values.counts, now.wall.as_microsecond(), PromiseCause::Held);
        }
        self.dependencies.untrack(job);
        self.batch.touch(job);
        Ok(DaemonReply::JobIds(JobIds { jobs: vec![job] }))
    }

    /// Releases a held job, as if it were submitted now.
    pub(crate) fn release(&mut self, now: Now, caller: Caller, job: i64) -> Handled {
        let at = self.fresh(now)?;
        if self.owned_job(caller, job)?.state != JobState::Held {
            return Err(Problem::new(ProblemCode::Conflict, format!("job {job} is not held")).into());
        }
        let mut round = Round::default();
        if let Some(mut record) = self.jobs.remove(job) {
            record.state = JobState::Deferred;
            record.promise.renew(PromiseCause::Released);
            self.enter(at, record, &mut round);
        }
        if !round.is_empty() {
            let effects = self.play(now, at, round)?;
            if effects.iter().any(|(of, effect)| *of == job && matches!(effect, Effect::Refused { .. })) {
                let message = format!("job {job} has no window any more, and is over");
                return Err(Problem::new(ProblemCode::Refused, message).into());
            }
        }
        Ok(DaemonReply::JobIds(JobIds { jobs: vec![job] }))
    }

    /// Ends a running job and runs it again from the beginning.
    pub(crate) fn requeue(&mut self, caller: Caller, job: i64) -> Result<DaemonReply, Problem> {
        let runs = self.owned_job(caller, job)?.run.as_ref().is_some_and(|run| run.ending.is_none());
        if !runs {
            let message = format!("job {job} does not run, so there is nothing to run again");
            return Err(Problem::new(ProblemCode::Conflict, message));
        }
        self.end_run(job, Ending::Requeued);
        Ok(DaemonReply::JobIds(JobIds { jobs: vec![job] }))
    }

    /// Returns whether a job waits in a ledger.
    pub(crate) fn is_waiting(&self, job: i64) -> bool {
        self.entry(job).is_some_and(|entry| entry.state == State::Waiting)
    }
}
