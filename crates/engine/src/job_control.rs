//! Requests that change jobs: cancel, hold, release and requeue.

use std::collections::BTreeSet;

use miserly_api::model::{JobIds, Phase, Problem, ProblemCode};
use miserly_core::{Effect, EndHow, Ended, JobId, Round, State, Submission, Time};

use crate::effects::refusal_message;
use crate::expected_ends::ExpectedEnds;
use crate::moves::TriedRound;
use crate::requests::{Handled, RequestError};
use crate::{
    Attempt, Caller, DaemonReply, Ending, Engine, JobState, Journal, Launcher, Now, PromiseCause, Record,
};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Ends or withdraws a job; of an array, all of its unfinished jobs.
    pub(crate) fn cancel(&mut self, now: Now, caller: &Caller, job: i64, array: bool) -> Handled {
        // What is due is played first: it may be the start of the job.
        let at = self.fresh(now)?;
        if let Some(reply) = self.cancel_aside(caller, job)? {
            return Ok(reply);
        }
        if let Some(reply) = self.cancel_adopted(caller, job)? {
            return Ok(reply);
        }
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
            self.judge_cancel(now, caller.uid, *job);
            if !self.end_run(*job, Ending::Cancelled) {
                over.push(*job);
                round.withdrawn.extend(self.jobs.handle(*job));
            }
        }
        if !round.is_empty() {
            self.play(now, at, round)?;
        }
        for job in over {
            self.finish(job, Phase::cancelled(now.wall));
        }
        Ok(DaemonReply::JobIds(JobIds { jobs }))
    }

    fn array_jobs(&self, first: i64) -> Vec<i64> {
        let of_array =
            self.jobs.records().filter(|record| record.array.is_some_and(|array| array.first == first));
        of_array.map(|record| record.number).collect()
    }

    /// Ends the attempt of a job, if it has one. Returns whether it has. The job follows when the attempt has ended.
    pub(crate) fn end_run(&mut self, job: i64, ending: Ending) -> bool {
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
    ///
    /// Promises to jobs that wait for it break only with `move_promises`.
    pub(crate) fn hold(&mut self, now: Now, caller: &Caller, job: i64, move_promises: bool) -> Handled {
        let at = self.fresh(now)?;
        let record = self.owned_job(caller, job)?;
        record.check_can_hold()?;
        let in_ledger = record.is_in_ledger();
        let kept = record.held_by.filter(|_| record.state == JobState::Held && caller.uid == record.uid);
        let holder = kept.or(Some(caller.uid));
        self.check_dependents(now, job, move_promises)?;
        if in_ledger {
            let mut round = Round::default();
            round.withdrawn.extend(self.jobs.handle(job));
            self.play(now, at, round)?;
        }
        if let Some(record) = self.jobs.get_mut(job) {
            record.state = JobState::Held;
            // The hold of an operator outlasts that of the job's user.
            record.held_by = holder;
            record.entry = None;
            let wall = now.wall.as_microsecond();
            if caller.uid == record.uid {
                record.promise.give_up(&mut self.values.promises, job, wall, PromiseCause::Held);
            } else {
                record.promise.move_plan(wall, Time::MAX, PromiseCause::Operator);
            }
        }
        self.dependencies.untrack(job);
        self.dependencies.leave_place(job);
        if let Some(record) = self.jobs.get(job).filter(|record| !record.after.is_empty()) {
            self.dependencies.track(record);
        }
        self.batch.touch(job);
        Ok(DaemonReply::JobIds(JobIds { jobs: vec![job] }))
    }

    /// Releases a held job, as if it were submitted now. One that would have no window stays held.
    pub(crate) fn release(&mut self, now: Now, caller: &Caller, job: i64) -> Handled {
        let at = self.fresh(now)?;
        let record = self.owned_job(caller, job)?;
        self.check_can_release(caller, record)?;
        let queue = self.setup.queue(&record.queue);
        let may_be_refused = queue.is_some_and(|queue| queue.policy.horizon().is_some());
        if may_be_refused || record.deadline.is_some() {
            self.try_release(at, record)?;
        }
        let mut round = Round::default();
        if let Some(record) = self.jobs.remove(job) {
            let mut record = record.released();
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

    /// Checks that a job is held and that the caller may release it now.
    pub(crate) fn check_can_release(&self, caller: &Caller, record: &Record) -> Result<(), Problem> {
        if record.state != JobState::Held {
            let message = format!("job {} is not held", record.number);
            return Err(Problem::new(ProblemCode::Conflict, message));
        }
        self.info.may_release(caller, record)?;
        self.check_place_of_release(record)
    }

    /// Tries a release on a copy of the queue, which is returned if it is one that plans the job.
    pub(crate) fn try_release(&self, at: Time, held: &Record) -> Result<Option<TriedRound>, RequestError> {
        let record = held.clone().released();
        let queue = self.setup.position(&record.queue).filter(|queue| !self.is_stopped(*queue));
        let Some(queue) = queue.filter(|_| self.dependencies.has_place_for(&record)) else { return Ok(None) };
        let trial = self.try_entry(at, queue, &record)?;
        self.check_admitted(queue, &trial)?;
        Ok(Some(trial))
    }

    /// Ends a running job and runs it again from the beginning.
    ///
    /// A job that runs ahead of its window keeps the window. Any other gets a new one, which is tried first on a copy.
    /// Promises to jobs that wait for it break only with `move_promises`.
    pub(crate) fn requeue(&mut self, now: Now, caller: &Caller, job: i64, move_promises: bool) -> Handled {
        let at = self.fresh(now)?;
        self.owned_job(caller, job)?.check_can_requeue()?;
        if !self.is_waiting(job) {
            self.check_dependents(now, job, move_promises)?;
            self.try_again(at, job)?;
        }
        self.end_run(job, Ending::Requeued);
        Ok(DaemonReply::JobIds(JobIds { jobs: vec![job] }))
    }

    /// Tries on a copy of its queue that a running job gets another window, after its grace period. Returns the copy.
    pub(crate) fn try_again(&self, at: Time, job: i64) -> Result<Option<TriedRound>, RequestError> {
        let (Some(record), Some(handle)) = (self.jobs.get(job), self.jobs.handle(job)) else {
            return Ok(None);
        };
        let Some(queue) = self.system.queue_of(handle) else { return Ok(None) };
        self.check_another_run(at, record)?;
        let again = at + record.grace(self.setup.grace);
        let begin = self.earliest_begin(record, at).map_or(again, |begin| begin.max(again));
        let begin = Some(begin).filter(|_| self.setup.queues[queue].knows_begin());
        let request = record.request(&self.setup, 0, at, begin);
        let mut round = Round::default();
        round.ended.push(Ended { job: handle, how: EndHow::Cancelled });
        let new = JobId(self.jobs.unused_handle());
        round.submitted.push(Submission { job: new, request });
        let mut trial = self.try_round(queue, at, round)?;
        trial.entered.push((new, job));
        let refusal = trial.effects.iter().find_map(|effect| match effect {
            Effect::Refused { why, .. } => Some(refusal_message(*why, &self.unrecorded)),
            _ => None,
        });
        let Some(why) = refusal else { return Ok(Some(trial)) };
        let message = format!("job {job} cannot run again: {why}; it runs on");
        Err(Problem::new(ProblemCode::Refused, message).into())
    }

    /// Checks that no job with a promise waits for this one, or that these promises may be broken.
    pub(crate) fn check_dependents(&self, now: Now, job: i64, move_promises: bool) -> Result<(), Problem> {
        let promised = |number: &i64| {
            let promise = self.entry(*number)?.promise.filter(|promise| promise.best < Time::MAX)?;
            Some((*number, promise.best + self.slack_of(*number)))
        };
        let moved: Vec<(i64, Time)> = self.dependents(job).iter().filter_map(promised).collect();
        let Some((first, start)) = moved.first().copied().filter(|_| !move_promises) else { return Ok(()) };
        let others = match moved.len() {
            1 => String::new(),
            2 => ", and another job with a promise".to_owned(),
            more => format!(", and {} other jobs with promises", more - 1),
        };
        let message = format!(
            "job {first} waits for job {job} and is promised a start by {}{others}; to break that, repeat the request with --move-promises",
            now.local_at(start)
        );
        Err(Problem { job: Some(first), ..Problem::new(ProblemCode::Refused, message) })
    }

    /// Returns the jobs that wait for the end of a job, also through others, by number.
    pub(crate) fn dependents(&self, job: i64) -> BTreeSet<i64> {
        let mut found = BTreeSet::new();
        let mut next = vec![job];
        while let Some(job) = next.pop() {
            next.extend(self.dependencies.dependents(job).filter(|number| found.insert(*number)));
        }
        found
    }

    /// Returns whether a job waits in a ledger.
    pub(crate) fn is_waiting(&self, job: i64) -> bool {
        self.entry(job).is_some_and(|entry| entry.state == State::Waiting)
    }
}

impl Record {
    /// Checks that the job can be held.
    pub(crate) fn check_can_hold(&self) -> Result<(), Problem> {
        if self.run.is_none() {
            return Ok(());
        }
        let message =
            format!("job {} has begun to run; `miserly requeue` ends it and runs it again", self.number);
        Err(Problem::new(ProblemCode::Conflict, message))
    }

    /// Returns the record of a held job after its release.
    pub(crate) fn released(self) -> Record {
        Record { state: JobState::Deferred, held_by: None, set_aside: None, ..self }
    }

    /// Checks that the job can be ended and run again.
    pub(crate) fn check_can_requeue(&self) -> Result<(), Problem> {
        if self.run.as_ref().is_some_and(|run| run.ending.is_none()) {
            return Ok(());
        }
        let message = format!("job {} does not run, so there is nothing to run again", self.number);
        Err(Problem::new(ProblemCode::Conflict, message))
    }
}
