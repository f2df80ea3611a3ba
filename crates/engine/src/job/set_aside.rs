//! Jobs that the engine cannot place: they are set aside, and everything else goes on.
//!
//! A job is set aside if an event for it breaks a rule of its ledger, or if its ledger entry does not fit the setup or the pool.
//! A job without an attempt is then held, with the reason, so a release submits it again. The attempt of any other one runs on as
//! an adopted one, and its end decides. A queue is stopped if its policy breaks a rule, or if no job is known as the cause.

use std::sync::Arc;

use miserly_api::model::{Problem, ProblemCode, PromiseChangeReason};
use miserly_core::{Culprit, Fault, Round, Time, Violation};
use miserly_marks::{mark, mark_variant};

use crate::dependency::expected_ends::limit_end;
use crate::{
    Adoption, Attempt, AttemptOutcome, Caller, Ending, Engine, EngineError, JobState, Journal, JournalLine,
    Launcher, Now, Record,
};

/// What is set aside because of a violation.
enum Part {
    /// The requests of the batch: the violation concerns a job that is not stored.
    Requests,
    /// Jobs, by number.
    Jobs(Vec<i64>),
    /// A queue, by name.
    Queue(String),
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Sets aside what caused a violation, and drops all changes of the batch.
    ///
    /// The caller applies its inputs again, but for the requests handled so far, which are refused. A stopped queue plans nothing:
    /// its running jobs keep their windows, and its waiting jobs are promised no start. A reload of the configuration, or another
    /// daemon, gives its policy another chance.
    ///
    /// # Errors
    /// The error itself, if it is no violation, or if nothing is left that can be set aside.
    pub(crate) fn set_aside(&mut self, now: Now, mut error: EngineError) -> Result<(), EngineError> {
        // Each step sets a job aside, stops a queue, drops a request or adopts an attempt, and there are finitely many.
        loop {
            let violation = match error {
                EngineError::Violation(violation) => violation,
                EngineError::NotStarted(begun) => {
                    // No request has been handled before it.
                    self.drop_changes()?;
                    for window in &begun {
                        self.adopt_window(window);
                    }
                    return Ok(());
                }
                EngineError::Journal(_) => return Err(error),
            };
            let part = self.part_of(&violation)?;
            self.drop_batch(&part, &violation)?;
            match self.break_stopped_promises(now) {
                Ok(()) => return Ok(()),
                Err(next) => error = next,
            }
        }
    }

    /// Breaks the promises of stopped queues. Nothing keeps them.
    pub(crate) fn break_stopped_promises(&mut self, now: Now) -> Result<(), EngineError> {
        if self.stopped.first().is_none() {
            return Ok(());
        }
        mark!("promises of a stopped queue break");
        let at = self.values.next_instant(now.ticks);
        self.play(now, at, Round { fault: Some(Fault::Away), ..Round::default() })?;
        Ok(())
    }

    /// Returns whether the queue at a position is stopped: it plans nothing.
    pub(crate) fn is_stopped(&self, queue: usize) -> bool {
        self.stopped.contains(&self.setup.queues[queue].name)
    }

    /// Returns what has to be set aside, so that the violation cannot repeat.
    fn part_of(&self, violation: &Violation) -> Result<Part, EngineError> {
        if let Culprit::Event(Some(handle)) = violation.culprit
            && let Some(job) = self.jobs.number(handle)
        {
            let is_stored = self.journal.job(job)?.is_some_and(|row| !row.ended);
            return Ok(if is_stored { Part::Jobs(vec![job]) } else { Part::Requests });
        }
        let queue = self.setup.queues.get(violation.queue).map(|queue| &queue.name);
        let queue = queue.ok_or_else(|| EngineError::Violation(violation.clone()))?;
        if !self.stopped.contains(queue) {
            return Ok(Part::Queue(queue.clone()));
        }
        let placed = self.jobs.records().filter(|record| *record.queue == **queue && record.is_in_ledger());
        let placed: Vec<i64> = placed.map(|record| record.number).collect();
        if placed.is_empty() { Err(violation.clone().into()) } else { Ok(Part::Jobs(placed)) }
    }

    /// Replaces all changes of the batch by the stored state without a part, and rejects the requests.
    fn drop_batch(&mut self, part: &Part, violation: &Violation) -> Result<(), EngineError> {
        mark_variant!(part, Part { Requests, Jobs, Queue });
        let what = match part {
            Part::Requests => "a request broke a rule".to_owned(),
            Part::Jobs(jobs) => format!("{} set aside", named(jobs)),
            Part::Queue(queue) => format!("queue {queue} was stopped"),
        };
        tracing::error!("{what}: {violation}");
        for (requester, reply) in std::mem::take(&mut self.batch.replies) {
            // A refusal stands: it changed nothing.
            let message = format!("{what} meanwhile; request rejected, repeat it");
            requester.reply(reply.and_then(|_| Err(Problem::new(ProblemCode::Unavailable, message))));
        }
        match part {
            Part::Requests => {}
            Part::Jobs(jobs) => {
                Arc::make_mut(&mut self.unrecorded).aside.add(jobs, &violation.to_string());
            }
            Part::Queue(queue) => self.stopped.stop(queue.clone(), violation.to_string()),
        }
        self.drop_changes()?;
        if let Part::Queue(queue) = part {
            let (at, mistake) = (self.values.last_instant(), violation.to_string());
            self.batch.line(&JournalLine::Stopped { at, queue: queue.clone(), mistake });
        }
        Ok(())
    }

    /// Adopts the attempts of the jobs that the last load left out, and holds the jobs without one.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub(crate) fn settle_left_out(&mut self, now: Now) -> Result<(), EngineError> {
        let is_new = |(record, _): &&(Record, String)| {
            record.run.is_some() && self.unrecorded.attempt(record.number).is_none()
        };
        let new: Vec<(Record, String)> = self.unrecorded.aside.jobs().filter(is_new).cloned().collect();
        if !new.is_empty() {
            mark!("the attempt of a job that is set aside runs on");
            let adoptions = new.iter().filter_map(|(record, _)| self.adoption_of(record)).collect();
            self.adopt(adoptions);
            // Before any start: the pools do not have what they hold.
            self.load()?;
        }
        for (record, reason) in new {
            tracing::error!("job {} is set aside, and its attempt runs on: {reason}", record.number);
            self.log_aside(&record, reason);
        }
        let left_out: Vec<(Record, String)> = self.unrecorded.aside.jobs().cloned().collect();
        for (record, reason) in left_out.into_iter().filter(|(record, _)| record.run.is_none()) {
            self.hold_aside(now, record, reason);
        }
        Ok(())
    }

    /// Holds a job without an attempt that the engine cannot place.
    fn hold_aside(&mut self, now: Now, mut record: Record, reason: String) {
        mark!("a job is held, set aside");
        let number = record.number;
        tracing::error!(
            "job {number} is held, set aside: {reason}; `miserly release {number}` tries it again"
        );
        self.log_aside(&record, reason.clone());
        (record.state, record.held_by, record.set_aside) = (JobState::Held, None, Some(reason));
        (record.entry, record.started, record.start_reason, record.restarts) = (None, None, None, false);
        record.promise.move_plan(now.wall, Time::MAX, PromiseChangeReason::Stopped);
        if !record.after.is_empty() {
            self.dependencies.track(&record);
        }
        self.jobs.insert(record);
        self.batch.touch(number);
        Arc::make_mut(&mut self.unrecorded).aside.take(number);
    }

    /// Adds the line of a job that is set aside. A replay goes on at the checkpoint after it.
    fn log_aside(&mut self, record: &Record, reason: String) {
        let (at, queue) = (self.values.last_instant(), record.queue.to_string());
        self.batch.line(&JournalLine::SetAside { at, queue, job: record.number, reason });
        self.batch.has_setup = true;
    }

    /// Returns the attempt of a job that is set aside, with what it holds.
    fn adoption_of(&self, record: &Record) -> Option<Adoption> {
        let run = record.run.as_ref()?;
        let end = record.entry.as_ref().and_then(|entry| limit_end(&entry.entry()));
        Some(Adoption {
            attempt: record.attempt()?,
            name: record.name.to_string(),
            queue: Some(record.queue.to_string()),
            cpus: if run.in_window { run.cpus.clone() } else { vec![] },
            gpus: run.gpus.clone(),
            memory: record.memory.kilobytes(),
            end: end.map(|end| end - record.cleanup_time(self.setup.cleanup_time)),
            command: record.submission.command.clone(),
            directory: record.submission.directory.clone(),
        })
    }

    /// Ends the attempt of a job that is set aside, if the job is. It is held if it is to run again. Returns whether it is set aside.
    pub(crate) fn end_aside(&mut self, now: Now, attempt: Attempt, outcome: &AttemptOutcome) -> bool {
        let number = attempt.job;
        let is_last = |record: &Record| record.attempt() == Some(attempt);
        if !self.unrecorded.aside.record(number).is_some_and(is_last) {
            return false;
        }
        mark!("the attempt of a job that is set aside ends");
        self.release_adopted(attempt);
        let left_out = Arc::make_mut(&mut self.unrecorded).aside.take(number);
        let Some((mut record, reason)) = left_out else { return false };
        let retried = record.failure_to_retry(outcome);
        if record.cause_of_another_run(outcome).is_some() {
            record.retried.extend(retried);
            record.run = None;
            self.forget(attempt);
            self.hold_aside(now, record, reason);
        } else {
            let phase = record.final_phase(now, outcome);
            self.jobs.insert(record);
            self.finish(number, phase);
        }
        true
    }

    /// Ends the attempt of a job that is set aside. Returns whether the job is.
    ///
    /// # Errors
    /// If it is, and the caller may not change it.
    pub(crate) fn cancel_aside(&mut self, caller: &Caller, job: i64) -> Result<bool, Problem> {
        let Some(record) = self.unrecorded.aside.record(job) else { return Ok(false) };
        if !self.info.may_read(caller, record) {
            return Err(Problem::new(ProblemCode::Forbidden, format!("job {job} is another user's")));
        }
        mark!("a job that is set aside is cancelled");
        let Some(attempt) = record.attempt() else { return Ok(false) };
        let kill = self.kill(Ending::Cancelled);
        self.batch.act(attempt, kill);
        if let Some(run) = Arc::make_mut(&mut self.unrecorded).aside.run_mut(job) {
            run.ending = Some(Ending::Cancelled);
        }
        Ok(true)
    }
}

/// Returns the beginning of a sentence about jobs.
fn named(jobs: &[i64]) -> String {
    match jobs {
        [job] => format!("job {job} was"),
        _ => format!("{} jobs were", jobs.len()),
    }
}
