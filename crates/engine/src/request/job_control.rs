//! The parts of the requests that change jobs, and the request to run a job again.

use std::collections::BTreeSet;

use miserly_api::model::{JobIds, Problem, ProblemCode};
use miserly_core::{Effect, EndHow, Ended, JobId, Round, State, Submission, Time};
use miserly_marks::{mark, mark_variant};

use crate::dependency::expected_ends::ExpectedEnds;
use crate::effects::refusal_message;
use crate::request::handler::{Handled, RequestError};
use crate::request::trial::TriedRound;
use crate::{Attempt, Caller, DaemonReply, Ending, Engine, JobState, Journal, Launcher, Now, Record};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Ends the attempt of a job, if it has one. Returns whether it has. The job follows when the attempt has ended.
    pub(crate) fn end_run(&mut self, job: i64, ending: Ending) -> bool {
        let kill = self.kill(ending);
        let in_window = self.jobs.is_running(job);
        let Some(run) = self.jobs.run_mut(job) else { return false };
        if run.ending == Some(Ending::Displaced) && !in_window {
            return false;
        }
        mark_variant!(ending, Ending { Cancelled, Requeued, Displaced, WrittenOut });
        run.ending = Some(ending);
        // A repeated request sends the kill again, in case the first one was lost.
        self.batch.act(Attempt { job, nth: run.nth }, kill);
        self.batch.touch(job);
        true
    }

    /// Checks that a job is held and that the caller may release it now.
    pub(crate) fn check_can_release(&self, caller: &Caller, record: &Record) -> Result<(), Problem> {
        if record.state != JobState::Held {
            mark!("refused: the job is not held");
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
        mark!("a job is requeued");
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
        mark!("refused: another run has no window");
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
        mark!("refused: the promise of a dependent would break");
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
        if !self.has_begun() {
            return Ok(());
        }
        mark!("refused: a job that has begun cannot be held");
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
        mark!("refused: nothing to run again");
        let message = format!("job {} does not run, so there is nothing to run again", self.number);
        Err(Problem::new(ProblemCode::Conflict, message))
    }
}
