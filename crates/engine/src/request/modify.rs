//! Changes of waiting jobs.
//!
//! The request of a job in a queue is replaced there. A job that requests no more than before keeps its place and its promise.
//! Any other counts as submitted now, and its policy promises it another start, before other jobs move into its former place.
//! All of it is tried first on a copy of the queue, so a refused change has no effect.

use std::sync::Arc;

use miserly_api::model::{
    Modification, NewEnvironment, Problem, ProblemCode, PromiseChangeReason, Submission, TimeBound,
};
use miserly_core::{Amendment, Change, Effect, Entry, JobId, Request, Round, Span, State, Time};
use miserly_marks::{mark, mark_variant};

use crate::dependency::expected_ends::ExpectedEnds;
use crate::request::handler::{Handled, RequestError};
use crate::request::trial::TriedRound;
use crate::submission::check::{check, check_gpus, check_overrun, longest_wait, wait_until};
use crate::submission::size;
use crate::submission::submit::refused;
use crate::{Caller, Credential, DaemonReply, Engine, JobState, Journal, Launcher, Now, Record, Snapshot};

/// The most jobs that move back when a job takes the place of another one.
const MOST_PASSED: usize = 200;

/// A job whose request is replaced in its queue.
#[derive(Debug)]
pub(crate) struct AmendedJob {
    /// The record with its changes.
    pub(crate) record: Record,
    /// The handle in the queue.
    pub(crate) handle: JobId,
    request: Request,
    keeps_promise: bool,
}

/// A checked change.
#[derive(Debug)]
pub(crate) enum CheckedChange {
    /// Only the record changes.
    Record(Box<Record>),
    /// Requests are replaced in their queue, in this order. The first is that of the changed job.
    Amended(Vec<AmendedJob>),
    /// The job leaves its queue, and enters another one, or waits outside.
    Moved {
        /// The record with its changes.
        record: Box<Record>,
        /// The handle in the queue that it leaves, if it was in one.
        handle: Option<JobId>,
    },
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Changes a waiting job, unless the promise to another job would break.
    pub(crate) fn modify(
        &mut self,
        now: Now,
        caller: &Caller,
        job: i64,
        changes: &Modification,
        move_promises: bool,
    ) -> Handled {
        let at = self.fresh(now)?;
        let checked = self.checked_change(now, at, caller, job, changes)?;
        let trial = self.try_change(at, &checked)?;
        let moves = self.moves_of_change(now, job, &checked, trial.as_ref());
        for number in self.moving_later(now, &checked, trial.as_ref()) {
            self.check_dependents(now, number, move_promises)?;
        }
        mark_variant!(&checked, CheckedChange { Record, Amended, Moved });
        match checked {
            CheckedChange::Record(record) => self.replace_record(now, at, caller.uid, *record)?,
            CheckedChange::Amended(jobs) => self.amend_all(now, at, caller.uid, jobs)?,
            CheckedChange::Moved { record, handle } => self.move_job(now, at, caller.uid, *record, handle)?,
        }
        self.watch_start(job);
        // Its shim has the former request.
        self.withdraw_shim(job);
        Ok(DaemonReply::Moves(Box::new(moves)))
    }

    /// Checks a change of a waiting job.
    pub(crate) fn checked_change(
        &self,
        now: Now,
        at: Time,
        caller: &Caller,
        job: i64,
        changes: &Modification,
    ) -> Result<CheckedChange, RequestError> {
        let before = self.owned_job(caller, job)?;
        if before.has_begun() {
            mark!("refused: a job that has begun cannot change");
            let message =
                format!("job {job} has begun to run; only its time limit can change (miserly extend)");
            return Err(Problem::new(ProblemCode::Conflict, message).into());
        }
        if self.entry(job).is_some_and(|entry| !entry.is_untouched()) {
            mark!("refused: a job that has run early cannot change");
            let message =
                format!("job {job} has run ahead of its window: hold it, change it, and release it");
            return Err(Problem::new(ProblemCode::Conflict, message).into());
        }
        let check = |submission: &Submission, name: &str| self.launcher.check(submission, name);
        let current = self.current();
        let record = current.modified(now, caller, before, changes, &check)?;
        self.check_changed_usage(at, before, &record)?;
        current.check_known_begins(at, std::slice::from_ref(&record))?;
        if let Some(other) = changes.before {
            if self.jobs.handle(job).is_some() && !self.enters_at_once(&record, at) {
                let message = "before: the queue takes such a job into account at its earliest start only";
                return Err(Problem::with_field("before", message).into());
            }
            return self.in_place_of(at, caller, &record, other).map(CheckedChange::Amended);
        }
        let (Some(handle), Some(entry)) = (self.jobs.handle(job), self.entry(job)) else {
            let waits = before.state == JobState::Deferred;
            let has_place = self.dependencies.has_place_for(&record);
            if waits && changes.deadline.is_some() && (record.array_limit().is_some() || !has_place) {
                let message = format!("job {job} waits for a place under a limit, so no end can be promised");
                return Err(Problem::with_field("deadline", message).into());
            }
            let enters = waits && self.enters_at_once(&record, at) && has_place;
            let record = Box::new(record);
            return Ok(if enters {
                CheckedChange::Moved { record, handle: None }
            } else {
                CheckedChange::Record(record)
            });
        };
        if before.requests_the_same(&record) {
            return Ok(CheckedChange::Record(Box::new(record)));
        }
        if record.queue != before.queue || !self.enters_at_once(&record, at) {
            return Ok(CheckedChange::Moved { record: Box::new(record), handle: Some(handle) });
        }
        let keeps_place = before.admits_place_of(&record);
        let submit = if keeps_place { entry.request.submit } else { at };
        let keeps =
            |request: &Request| keeps_place && entry.promise.is_none_or(|of| can_keep(of.best, request));
        Ok(CheckedChange::Amended(self.amended(at, record, submit, keeps).into_iter().collect()))
    }

    /// Returns the amendment of a job in a queue.
    fn amended(
        &self,
        at: Time,
        record: Record,
        submit: Time,
        keeps_promise: impl FnOnce(&Request) -> bool,
    ) -> Option<AmendedJob> {
        let handle = self.jobs.handle(record.number)?;
        let queue = self.setup.position(&record.queue)?;
        let request = record.request(&self.setup, queue, submit, self.earliest_begin(&record, at));
        let keeps_promise = keeps_promise(&request);
        Some(AmendedJob { record, handle, request, keeps_promise })
    }

    /// Returns a job and those behind which it was, in their new order.
    ///
    /// They exchange their places in the order of submissions, and their policy promises them new starts.
    fn in_place_of(
        &self,
        at: Time,
        caller: &Caller,
        record: &Record,
        other: i64,
    ) -> Result<Vec<AmendedJob>, RequestError> {
        let refuse = |message: String| RequestError::from(Problem::new(ProblemCode::Conflict, message));
        let job = record.number;
        self.owned_job(caller, other)?;
        let waits = |of: &&Record| {
            (of.uid, &of.queue) == (record.uid, &record.queue)
                && of.run.is_none()
                && self.entry(of.number).is_some_and(Entry::is_untouched)
        };
        let place = |of: &Record| Some((self.entry(of.number)?.request.submit, of.number));
        let mut all: Vec<(Time, i64)> = self.jobs.records().filter(waits).filter_map(place).collect();
        all.sort_unstable();
        let position = |number: i64| all.iter().position(|(_, of)| *of == number);
        let (Some(to), Some(from)) = (position(other), position(job)) else {
            mark!("refused: no place to take");
            let message = format!(
                "job {job} takes the place of job {other} only if both wait with a place in the same queue, for the same user"
            );
            return Err(refuse(message));
        };
        if from <= to {
            return Err(refuse(format!("job {job} is before job {other} already")));
        }
        if from - to > MOST_PASSED {
            return Err(refuse(format!(
                "job {job} would pass {} jobs; the most is {MOST_PASSED}",
                from - to
            )));
        }
        mark!("a job takes the place of another");
        let mut places = all[to..=from].iter().map(|(submit, _)| *submit);
        let behind = all[to..from].iter().filter_map(|(_, number)| self.jobs.get(*number)).cloned();
        // Jobs of one instant have the order of their numbers, so each is a tick behind the one before.
        let mut last = Time::from_ticks(i64::MIN);
        let mut amended = vec![];
        for moved in std::iter::once(record.clone()).chain(behind) {
            last = places.next().unwrap_or(last).max(last + Span::TICK);
            amended.extend(self.amended(at, moved, last, |_| false));
        }
        // Those behind them stay behind them.
        for (submit, number) in &all[from + 1..] {
            if *submit > last {
                break;
            }
            last = last + Span::TICK;
            let Some(next) = self.jobs.get(*number) else { continue };
            amended.extend(self.amended(at, next.clone(), last, |_| true));
        }
        if amended.len() > MOST_PASSED + 1 {
            let message =
                format!("the places of {} jobs would change; the most is {MOST_PASSED}", amended.len());
            return Err(refuse(message));
        }
        Ok(amended)
    }

    /// Plays a change on copies of the queues. Returns the copy of the queue in which the jobs are then.
    ///
    /// # Errors
    /// If a promise to another job would break, or a job would be refused.
    pub(crate) fn try_change(
        &self,
        at: Time,
        checked: &CheckedChange,
    ) -> Result<Option<TriedRound>, RequestError> {
        let (queue, trial) = match checked {
            CheckedChange::Record(_) => return Ok(None),
            CheckedChange::Amended(jobs) => {
                let Some(queue) = jobs.first().and_then(|job| self.system.queue_of(job.handle)) else {
                    return Ok(None);
                };
                let mut trial = self.try_round(queue, at, amending(jobs))?;
                trial.entered = jobs.iter().map(|job| (job.handle, job.record.number)).collect();
                (queue, trial)
            }
            CheckedChange::Moved { record, handle } => {
                let from = handle.and_then(|handle| Some((handle, self.system.queue_of(handle)?)));
                if let Some((handle, from)) = from {
                    let round = Round { withdrawn: vec![handle], ..Round::default() };
                    self.try_round(from, at, round)?.check_kept()?;
                }
                let Some(queue) = self.setup.position(&record.queue) else { return Ok(None) };
                (queue, self.try_entry(at, queue, record)?)
            }
        };
        trial.check_kept()?;
        self.check_admitted(queue, &trial)?;
        Ok(Some(trial))
    }

    /// Tries on a copy of a queue that a job enters it, if it does so at once.
    pub(crate) fn try_entry(
        &self,
        at: Time,
        queue: usize,
        record: &Record,
    ) -> Result<TriedRound, RequestError> {
        let mut round = Round::default();
        let new = JobId(self.jobs.unused_handle());
        if self.enters_at_once(record, at) {
            let request = record.request(&self.setup, 0, at, self.earliest_begin(record, at));
            round.submitted.push(miserly_core::Submission { job: new, request });
        }
        let mut trial = self.try_round(queue, at, round)?;
        trial.entered = vec![(new, record.number)];
        Ok(trial)
    }

    /// Checks that the policy of a queue refused no job in a trial.
    pub(crate) fn check_admitted(&self, queue: usize, trial: &TriedRound) -> Result<(), Problem> {
        let horizon = self.setup.queues[queue].policy.horizon();
        let effects: Vec<(i64, Effect)> = trial.effects_on_entered().collect();
        let refusal = |(_, number): &(JobId, i64)| refused(&effects, *number, &self.unrecorded, horizon);
        trial.entered.iter().find_map(refusal).map_or(Ok(()), Err)
    }

    /// Replaces the record of a job whose queue does not notice.
    fn replace_record(
        &mut self,
        now: Now,
        at: Time,
        caller: u32,
        mut record: Record,
    ) -> Result<(), RequestError> {
        let number = record.number;
        // An operator may hold a job whose promise is open.
        if self.jobs.get(number).is_some_and(|before| !before.admits_place_of(&record)) {
            self.judge_change(now, caller, &mut record);
        }
        if record.state != JobState::Deferred {
            self.jobs.insert(record);
            self.batch.touch(number);
            return Ok(());
        }
        self.dependencies.untrack(number);
        let mut round = Round::default();
        self.enter(at, record, &mut round);
        if !round.is_empty() {
            self.play(now, at, round)?;
        }
        Ok(())
    }

    /// Replaces the requests of jobs in their queue.
    fn amend_all(
        &mut self,
        now: Now,
        at: Time,
        caller: u32,
        jobs: Vec<AmendedJob>,
    ) -> Result<(), RequestError> {
        let round = amending(&jobs);
        let mut displaced = vec![];
        for AmendedJob { mut record, keeps_promise, .. } in jobs {
            if !keeps_promise {
                self.judge_change(now, caller, &mut record);
                displaced.push(record.number);
            }
            self.batch.touch(record.number);
            self.dependencies.take_place(&record);
            self.jobs.insert(record);
        }
        self.play(now, at, round)?;
        for number in displaced {
            self.end_plan_if_none(now, number);
        }
        Ok(())
    }

    /// Records that a job has lost its plan with the change of its request by an operator, if it waits without one.
    fn end_plan_if_none(&mut self, now: Now, number: i64) {
        let has_promise = |entry: &Entry| entry.state != State::Waiting || entry.promise.is_some();
        if self.entry(number).is_some_and(has_promise) {
            return;
        }
        if let Some(record) = self.jobs.get_mut(number) {
            record.promise.move_plan(now.wall, Time::MAX, PromiseChangeReason::Operator);
        }
    }

    /// Takes a job out of its queue. It enters its new one, or waits outside.
    fn move_job(
        &mut self,
        now: Now,
        at: Time,
        caller: u32,
        mut record: Record,
        handle: Option<JobId>,
    ) -> Result<(), RequestError> {
        let mut round = Round { withdrawn: handle.into_iter().collect(), ..Round::default() };
        self.dependencies.untrack(record.number);
        self.jobs.leave_ledger(record.number);
        (record.state, record.entry) = (JobState::Deferred, None);
        self.judge_change(now, caller, &mut record);
        let number = record.number;
        self.enter(at, record, &mut round);
        if self.jobs.handle(number).is_none() {
            self.dependencies.leave_place(number);
        }
        self.play(now, at, round)?;
        self.end_plan_if_none(now, number);
        Ok(())
    }
}

impl CheckedChange {
    /// Returns the records of the changed jobs. The first is that of the job that was to change.
    pub(crate) fn records(&self) -> Vec<&Record> {
        match self {
            CheckedChange::Record(record) | CheckedChange::Moved { record, .. } => vec![record],
            CheckedChange::Amended(jobs) => jobs.iter().map(|job| &job.record).collect(),
        }
    }
}

/// Returns the round in which the requests of jobs are replaced.
fn amending(jobs: &[AmendedJob]) -> Round {
    let amendment = |job: &AmendedJob| {
        let (request, keeps_promise) = (Box::new(job.request.clone()), job.keeps_promise);
        Amendment { job: job.handle, change: Change::Request { request, keeps_promise } }
    };
    Round { amended: jobs.iter().map(amendment).collect(), ..Round::default() }
}

/// Returns whether a promised start is within the bounds of a request.
fn can_keep(promised: Time, request: &Request) -> bool {
    let bounds = &request.constraints;
    bounds.begin.is_none_or(|begin| begin <= promised)
        && bounds.deadline.is_none_or(|deadline| promised + request.planned() <= deadline)
}

impl Snapshot {
    /// Returns the credential of a job and its submission before and after a change, for the launcher to seal anew.
    ///
    /// `None` for a job without a credential, and for a caller who may not change the job.
    pub fn sealed_change(
        &self,
        caller: &Caller,
        job: i64,
        changes: &Modification,
    ) -> Option<(Credential, Submission, Submission)> {
        let record = self.jobs.get(job).filter(|record| self.info.may_read(caller, record))?;
        let queue = changes.queue.clone().unwrap_or_else(|| record.queue.to_string());
        let after = self.changed_submission(record, changes, queue);
        Some((record.credential.clone()?, (*record.submission).clone(), after))
    }

    /// Returns the name of the queue of submissions that name none.
    pub fn default_queue(&self) -> Option<&str> {
        self.setup.queues.first().map(|queue| queue.name.as_str())
    }

    /// Returns the record of a waiting job with changes.
    ///
    /// # Errors
    /// If the queue, the limits of the queue or the launcher do not admit them.
    fn modified(
        &self,
        now: Now,
        caller: &Caller,
        before: &Record,
        changes: &Modification,
        launchable: &dyn Fn(&Submission, &str) -> Result<(), Problem>,
    ) -> Result<Record, Problem> {
        if *changes == Modification::default() {
            return Err(Problem::new(ProblemCode::Malformed, "no change is given"));
        }
        let sealed = [("name", changes.name.is_some()), ("environment", changes.environment.is_some())];
        if let Some((field, _)) =
            sealed.into_iter().find(|(_, changes)| *changes && before.credential.is_some())
        {
            let message = format!(
                "the {field} was sealed at the submission, because jobs run as their users; it cannot change: submit the job again"
            );
            return Err(Problem::with_field(field, message));
        }
        let queue = match &changes.queue {
            Some(queue) => self.queue_for(caller, Some(queue))?,
            None => self.queue_called(&before.queue)?,
        };
        self.stopped.check(&queue.name)?;
        let submission = self.changed_submission(before, changes, queue.name.clone());
        size::check(&submission)?;
        let name = submission.job_name();
        launchable(&submission, &name)?;
        let (time, memory) = check(queue, &submission)?;
        check_gpus(queue, &submission)?;
        self.check_deadline(queue, &submission)?;
        check_overrun(queue, &submission)?;
        let removes = |bound| changes.remove.contains(&bound);
        let ticks = |wall| now.ticks_at(wall);
        let begin = changes.begin.map(ticks).or(before.begin.filter(|_| !removes(TimeBound::Begin)));
        let keeps_wait = begin == before.begin && submission.start_within == before.submission.start_within;
        let start_by = if keeps_wait {
            before.start_by
        } else {
            longest_wait(&submission)?.map(|wait| wait_until(ticks(before.submitted), begin, wait))
        };
        if changes.start_within.is_some() && start_by.is_some_and(|by| by <= now.ticks) {
            mark!("refused: the new longest wait is over");
            let message = "the job has waited longer already; the wait counts from its submission, or from its earliest start";
            return Err(Problem::with_field("start_within", message));
        }
        Ok(Record {
            // An unchanged limit keeps its ticks: seconds are not exact.
            time: changes.time.map_or(before.time, |_| time),
            memory: if changes.memory.is_some() || changes.queue.is_some() { memory } else { before.memory },
            begin,
            start_by,
            deadline: changes
                .deadline
                .map(ticks)
                .or(before.deadline.filter(|_| !removes(TimeBound::Deadline))),
            name: name.into(),
            queue: queue.name.as_str().into(),
            submission: Arc::new(submission),
            modified: true,
            credential: caller.credential.clone().or_else(|| before.credential.clone()),
            ..before.clone()
        })
    }

    fn changed_submission(&self, before: &Record, changes: &Modification, queue: String) -> Submission {
        let removes = |bound| changes.remove.contains(&bound);
        let old = &*before.submission;
        let submission = Submission {
            name: changes.name.clone().or_else(|| old.name.clone()),
            cpus: changes.cpus.unwrap_or(old.cpus),
            gpus: changes.gpus.or(old.gpus),
            gpu_type: changes.gpu_type.clone().or_else(|| {
                // A job without GPUs has no type of them.
                old.gpu_type.clone().filter(|_| changes.gpus != Some(0))
            }),
            gpu_memory: old.gpu_memory.filter(|_| changes.gpus != Some(0)),
            memory: changes.memory.or(old.memory),
            time: changes.time.unwrap_or(before.time.as_secs_f64()),
            queue: Some(queue),
            begin: changes.begin.or(old.begin.filter(|_| !removes(TimeBound::Begin))),
            deadline: changes.deadline.or(old.deadline.filter(|_| !removes(TimeBound::Deadline))),
            start_within: changes
                .start_within
                .or(old.start_within.filter(|_| !removes(TimeBound::StartWithin))),
            overrun_if_idle: changes.overrun_if_idle.unwrap_or(old.overrun_if_idle),
            ..old.clone()
        };
        let submission = match changes.environment.as_deref() {
            Some(NewEnvironment { text, bytes }) => {
                Submission { environment: text.clone(), environment_bytes: bytes.clone(), ..submission }
            }
            None => submission,
        };
        self.setup.in_whole_cores(&submission).into_owned()
    }
}

impl Record {
    /// Returns whether another record of the job makes the same request to its policy.
    fn requests_the_same(&self, other: &Record) -> bool {
        let request = |of: &Record| {
            (of.time, of.memory, of.submission.cpus, of.begin, of.deadline, Arc::clone(&of.queue))
        };
        request(self) == request(other) && self.gpu_request() == other.gpu_request()
    }

    /// Returns the number, the types and the memory of the requested GPUs.
    fn gpu_request(&self) -> (Option<u64>, Option<&str>, Option<u64>) {
        let Submission { gpus, gpu_type, gpu_memory, .. } = &*self.submission;
        (*gpus, gpu_type.as_deref(), *gpu_memory)
    }

    /// Returns whether another record of the job may keep the place of this one: it requests no more.
    fn admits_place_of(&self, other: &Record) -> bool {
        let has_type = |of: &Record| of.submission.gpu_type.is_some() || of.submission.gpu_memory.is_some();
        other.queue == self.queue
            && other.time <= self.time
            && other.memory <= self.memory
            && other.submission.cpus <= self.submission.cpus
            && other.gpus() <= self.gpus()
            && (other.gpu_request() == self.gpu_request() || !has_type(other) && !has_type(self))
    }
}
