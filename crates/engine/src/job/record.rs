//! The stored record of a job.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::fmt::serde::timestamp::microsecond;
use miserly_api::model::{Exit, OverdueCause, Phase, SignalRequest, StartReason, StepView, Submission};
use miserly_core::{Constraints, Entry, Kind, Request, Resources, Sizes, Span, State, Time};
use miserly_saved::ticks;
use serde::{Deserialize, Serialize};

use crate::journal::to_json;
use crate::{
    Attempt, AttemptOutcome, Credential, JobMemory, JobRow, JournalError, PromiseLog, Queue, SavedEntry,
    Setup, StepLog, UsageLog,
};

/// All that is stored of a job.
///
/// A snapshot shares its texts and its entry, and the jobs of an array their submission. Each stored record has its own copy.
#[allow(clippy::unsafe_derive_deserialize, reason = "only the marks in its methods have unsafe code")]
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Record {
    /// The job's number.
    pub number: i64,
    /// Its place in an array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayMember>,
    /// The user, by number.
    pub uid: u32,
    /// The first group of the user at the submission, by number, if it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// The proof of the submission for the launcher, if it needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<Credential>,
    /// The job's name.
    pub name: Arc<str>,
    /// The queue.
    pub queue: Arc<str>,
    /// The tables of limits that named the user at the submission, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Arc<str>>,
    /// The wall time of the submission.
    #[serde(with = "microsecond::required")]
    pub submitted: Timestamp,
    /// The time limit.
    #[serde(with = "ticks")]
    pub time: Span,
    /// The cleanup time with which the resources were planned; `None` until the job is in a ledger.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "ticks::optional")]
    pub cleanup_time: Option<Span>,
    /// Memory.
    pub memory: JobMemory,
    /// The earliest start that the user set.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "ticks::optional")]
    pub begin: Option<Time>,
    /// The deadline that the user set.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "ticks::optional")]
    pub deadline: Option<Time>,
    /// The latest start that the user set. The job is given up if its command has not run by then.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "ticks::optional")]
    pub start_by: Option<Time>,
    /// The part of `time` that the job was given past its own limit, because no other job needed its place.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "ticks::optional")]
    pub overrun: Option<Span>,
    /// The unfinished jobs that have to end first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<i64>,
    /// Those of `after` that have to succeed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_ok: Vec<i64>,
    /// Those of `after` that have to fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_not_ok: Vec<i64>,
    /// The state of the job.
    pub state: JobState,
    /// The user who held it, by number; `None` if it was held at its submission, or by an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<u32>,
    /// The entry in the ledger, while the job has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Arc<SavedEntry>>,
    /// The living attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// The shim that waits for its window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<WaitingShim>,
    /// The number of attempts so far, with that of the shim that waits.
    #[serde(default)]
    pub attempts: u32,
    /// The number of attempts whose command never ran.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub never_ran: u32,
    /// The exit codes of the attempts that failed and after which it ran again, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retried: Vec<i32>,
    /// The first instant at which the present attempt ran.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "ticks::optional")]
    pub started: Option<Time>,
    /// The reason of the last start in its window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_reason: Option<StartReason>,
    /// The time since the start in which a finished job did not run. Time on fewer processors than requested counts in
    /// proportion.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "ticks::optional")]
    pub suspended_time: Option<Span>,
    /// How the job lost processors in its window, or the sole use of them; the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_lost: Option<String>,
    /// Why the epilog of an attempt failed; the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epilog_failed: Option<String>,
    /// Whether its next attempt continues where an earlier one was written out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restarts: bool,
    /// Why an attempt was not written out, so that the job began anew; the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_out_failed: Option<String>,
    /// Why the engine could not place the job, which is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<String>,
    /// The resources that its ended attempts used; empty in the state of earlier versions.
    #[serde(default, skip_serializing_if = "UsageLog::is_empty")]
    pub usage: UsageLog,
    /// The steps of its last run that had some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Box<StepLog>>,
    /// Whether its request was changed after its submission.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub modified: bool,
    /// The most processors that a resizable job wants now, if it asked for fewer than at its submission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<u64>,
    /// The promises to the job.
    #[serde(flatten)]
    pub promise: PromiseLog,
    /// The submission.
    pub submission: Arc<Submission>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The limit of an array on its jobs that run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrayLimit {
    /// The number of the first job of the array.
    pub(crate) array: i64,
    /// The most jobs of the array in a ledger. A job runs only while it is there.
    pub(crate) limit: u32,
}

/// The place of a job in an array. It is stored as a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "(i64, u32)", into = "(i64, u32)")]
pub struct ArrayMember {
    /// The number of the first job of the array.
    pub first: i64,
    /// The index of the job in the array.
    pub index: u32,
}

impl From<(i64, u32)> for ArrayMember {
    fn from((first, index): (i64, u32)) -> ArrayMember {
        ArrayMember { first, index }
    }
}

impl From<ArrayMember> for (i64, u32) {
    fn from(ArrayMember { first, index }: ArrayMember) -> (i64, u32) {
        (first, index)
    }
}

/// The state of a job, without the details of its ledger entry and its attempt.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum JobState {
    /// Held by its user or an administrator.
    Held,
    /// Not in a ledger yet: it waits for an instant or for other jobs, of which its policy has no notion.
    #[default]
    Deferred,
    /// In the ledger of its queue, where it waits, runs or is suspended.
    Queued,
    /// Finished.
    Finished(Box<Phase>),
}

/// A living attempt of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Run {
    /// The number of the attempt.
    pub nth: u32,
    /// The processors allocated to it, by number; none while it is opportunistic.
    pub cpus: Vec<u32>,
    /// The GPUs that it has until its end, by index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<u32>,
    /// Whether it is in its window; else it is opportunistic.
    pub in_window: bool,
    /// Whether its processes are stopped.
    pub stopped: bool,
    /// The reason why it does not end although it shall, as its launcher reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overdue: Option<OverdueCause>,
    /// Since when it uses almost no processor time, as its shim reports.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "ticks::optional")]
    pub idle_since: Option<Time>,
    /// Whether its user has stopped its processes in its window.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// The last signal that was sent to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<SentSignal>,
    /// The consequence of its end, if the engine has requested that end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
}

/// A signal that a user has sent to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SentSignal {
    /// The number of the signal among those to the attempt, from 1. A shim sends a signal with the same number once.
    pub nth: u32,
    /// The signal and its receivers.
    pub request: SignalRequest,
}

/// A shim that waits for the window of a job. It is no attempt of the job before its command begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct WaitingShim {
    /// The number of the attempt that it will be.
    pub nth: u32,
    /// Whether it is withdrawn: its end is not known yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_withdrawn: bool,
}

/// The consequence of a requested end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The job is finished: a user cancelled it.
    Cancelled,
    /// The job is submitted again: a user requeued it.
    Requeued,
    /// The job is in its queue already: its policy requeued it.
    Displaced,
    /// The job stays suspended without an attempt, if it was written out. Else it is submitted again.
    WrittenOut,
}

impl Ending {
    /// Returns whether the job then has no attempt, and may get another one at once.
    pub(crate) fn makes_room(self) -> bool {
        matches!(self, Ending::Displaced | Ending::WrittenOut)
    }
}

impl Run {
    /// Returns an attempt that runs and whose end was not requested.
    pub fn new(nth: u32, cpus: Vec<u32>, in_window: bool) -> Run {
        Run { nth, cpus, in_window, ..Run::default() }
    }

    /// Returns whether it is ended without a consequence for its job, which has another place in its queue.
    pub(crate) fn is_displaced(&self) -> bool {
        self.ending == Some(Ending::Displaced)
    }

    /// Returns whether the job counts as running by it: an attempt that is killed for the queue or ahead of its window does not.
    pub(crate) fn counts(&self) -> bool {
        self.ending.is_none() || (self.in_window && !self.is_displaced())
    }
}

impl Record {
    /// Returns the record of a job that was never in a ledger and requests nothing.
    pub(crate) fn new(number: i64, state: JobState, submission: Arc<Submission>) -> Record {
        Record { number, state, submission, ..Record::default() }
    }

    /// Returns the record of a stored row.
    ///
    /// # Errors
    /// The problem, if it cannot be read.
    pub(crate) fn read(row: &JobRow) -> Result<Record, String> {
        match &row.problem {
            Some(problem) => Err(problem.clone()),
            None => serde_json::from_str(&row.body).map_err(|error| error.to_string()),
        }
    }

    /// Returns the record as the journal stores it.
    pub(crate) fn row(&self) -> Result<JobRow, JournalError> {
        Ok(JobRow {
            number: self.number,
            ended: self.is_finished(),
            uid: self.uid,
            queue: self.queue.to_string(),
            array: self.array.map(|array| array.first),
            body: to_json(self)?,
            problem: None,
        })
    }

    /// Removes the environment and the script, which only a run needs.
    pub(crate) fn drop_secrets(&mut self) {
        let submission = Arc::make_mut(&mut self.submission);
        submission.environment.clear();
        submission.environment_bytes.clear();
        // It still shows that there was one.
        submission.script = submission.script.take().map(|_| String::new());
    }

    /// Finishes a job without a run of its own engine, since its attempt is gone.
    pub fn finish_lost(&mut self, phase: Phase) {
        (self.entry, self.run) = (None, None);
        self.state = JobState::Finished(Box::new(phase));
        self.drop_secrets();
    }

    /// Returns whether the job has finished.
    pub fn is_finished(&self) -> bool {
        matches!(self.state, JobState::Finished(_))
    }

    /// Returns whether the job is in the ledger of its queue.
    pub fn is_in_ledger(&self) -> bool {
        self.state == JobState::Queued
    }

    /// Returns the entry in the ledger, if the job is there.
    pub(crate) fn ledger_entry(&self) -> Option<Entry> {
        self.entry.as_deref().filter(|_| self.is_in_ledger()).map(SavedEntry::entry)
    }

    /// Returns its entry in the ledger of a queue, whose policy may be another one than at its submission.
    ///
    /// A job that was not submitted as resizable keeps its processors under each.
    pub(crate) fn entry_in(&self, setup: &Setup, queue: usize) -> Option<Entry> {
        let entry = self.ledger_entry()?;
        let sizes = if setup.queues[queue].policy.needs().resizing {
            Some(self.sizes())
        } else {
            entry.request.sizes
        };
        let request = Request { queue: u32::try_from(queue).ok(), sizes, ..entry.request };
        Some(Entry { request, ..entry })
    }

    /// Returns the array of the job and the most jobs of it that may be in a ledger, if there is a limit.
    pub(crate) fn array_limit(&self) -> Option<ArrayLimit> {
        let limit = self.submission.array.as_ref()?.limit?;
        Some(ArrayLimit { array: self.array?.first, limit })
    }

    /// Returns the exit code of an attempt if the job runs again after it.
    pub(crate) fn failure_to_retry(&self, outcome: &AttemptOutcome) -> Option<i32> {
        let AttemptOutcome::Ended { exit: Exit::Code(code), by: None, .. } = *outcome else { return None };
        let retry = self.submission.retry.as_ref().filter(|_| !self.is_ending())?;
        let again = self.retried.len() < usize::try_from(retry.limit).unwrap_or(usize::MAX);
        (again && retry.admits(code)).then_some(code)
    }

    /// Returns whether the job is suspended without an attempt: a command has written it out.
    pub fn is_written_out(&self) -> bool {
        self.restarts && self.is_suspended_without_attempt()
    }

    /// Returns whether the job is suspended and has no attempt: it was written out, or displaced and suspended at one instant.
    pub(crate) fn is_suspended_without_attempt(&self) -> bool {
        let state = || self.entry.as_deref().map(|entry| entry.entry().state);
        self.run.is_none() && matches!(state(), Some(State::Suspended { .. }))
    }

    /// Returns whether the job has an attempt, or is to continue one.
    pub(crate) fn has_begun(&self) -> bool {
        self.run.is_some() || self.is_written_out()
    }

    /// Returns whether the daemon ends its attempt.
    pub(crate) fn is_ending(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.ending.is_some())
    }

    /// Returns the attempt that the waiting shim will be.
    pub(crate) fn waiting_attempt(&self) -> Option<Attempt> {
        self.waits.map(|WaitingShim { nth, .. }| Attempt { job: self.number, nth })
    }

    /// Returns the attempt that has a shim: the living one, or else the one that waits.
    pub(crate) fn last_shim(&self) -> Option<Attempt> {
        self.attempt().or(self.waiting_attempt())
    }

    /// Returns the number of the present or last attempt, 0 before the first one. A shim that waits is none.
    pub(crate) fn last_attempt(&self) -> u32 {
        self.attempts - u32::from(self.waits.is_some())
    }

    /// Returns how often the command was begun, as far as that is known.
    pub fn runs(&self) -> u32 {
        self.last_attempt() - self.never_ran
    }

    /// Returns the steps of the present or last attempt.
    pub(crate) fn steps_of_last_attempt(&self) -> &[StepView] {
        self.steps.as_deref().map_or(&[], |steps| steps.of_attempt(self.last_attempt()))
    }

    /// Returns whether a command of the job has begun, or is to begin now.
    pub(crate) fn has_run(&self) -> bool {
        self.started.is_some() || self.run.is_some() || self.runs() > 0
    }

    /// Returns the attempt that is alive.
    pub(crate) fn attempt(&self) -> Option<Attempt> {
        self.run.as_ref().map(|Run { nth, .. }| Attempt { job: self.number, nth: *nth })
    }

    /// Returns the time limit of a job that is time-sliced.
    pub(crate) fn limit(&self) -> Span {
        self.time
    }

    /// Returns the time limit of the user, without what the job was given past it.
    pub fn own_limit(&self) -> Span {
        self.time - self.overrun.unwrap_or(Span::ZERO)
    }

    /// Returns the remaining time in which the job may run.
    pub(crate) fn left(&self, now: Time) -> Span {
        self.entry.as_ref().map_or(Span::ZERO, |entry| entry.entry().left(now, self.submission.cpus.into()))
    }

    /// Returns whether a first start at an instant is later than the user permits.
    pub(crate) fn is_too_late(&self, start: Time) -> bool {
        self.start_by.is_some_and(|by| by < start) && self.runs() == 0
    }

    /// Returns the end of a window that begins at an instant. No window goes beyond the deadline.
    pub(crate) fn end_of_window(&self, start: Time) -> Time {
        self.by_deadline(start + self.time)
    }

    /// Returns the end of a window, by the deadline if there is one.
    pub(crate) fn by_deadline(&self, end: Time) -> Time {
        self.deadline.map_or(end, |deadline| end.min(deadline))
    }

    /// Returns the time for which the job's resources are planned: its time limit and the cleanup time.
    pub(crate) fn planned(&self, today: Span) -> Span {
        self.time + self.cleanup_time(today)
    }

    /// Returns the cleanup time after the job's window: as it was planned, or else `today`.
    pub(crate) fn cleanup_time(&self, today: Span) -> Span {
        self.cleanup_time.unwrap_or(today)
    }

    /// Returns the grace period of the job. It is at most a tenth of the time limit.
    pub(crate) fn grace(&self, longest: Span) -> Span {
        longest.min(Span::from_ticks(self.time.ticks() / 10))
    }

    /// Returns the number of GPUs on which it runs. A share is on one.
    pub(crate) fn gpus(&self) -> u64 {
        self.submission.gpu_count()
    }

    /// Returns the time of its GPUs in its window, which is that of its entry, until `at`. It keeps them however many processors it
    /// has, and for its time limit at most.
    pub(crate) fn gpu_time(&self, entry: &Entry, at: Time) -> u128 {
        let State::Running { start, .. } = entry.state else { return 0 };
        let time = (at - start).max(Span::ZERO).min(self.time);
        u128::from(time.ticks().unsigned_abs()) * u128::from(self.gpus())
    }

    /// Returns what it needs of its pool.
    pub(crate) fn demand(&self) -> Resources {
        let cpus = Resources::cpus(self.submission.cpus);
        cpus.with(Kind::Memory, self.memory.kilobytes()).with(Kind::Gpus, self.submission.gpus.unwrap_or(0))
    }

    /// Returns the numbers of processors between which a policy may resize it. A job that is not resizable has what it requests.
    pub(crate) fn sizes(&self) -> Sizes {
        let Submission { cpus, resizable, .. } = *self.submission;
        let most = self.wanted.unwrap_or(cpus).min(cpus);
        Sizes { least: resizable.unwrap_or(cpus).min(most).into(), most: most.into() }
    }

    /// Returns the request to the policy.
    pub(crate) fn request(&self, setup: &Setup, queue: usize, at: Time, begin: Option<Time>) -> Request {
        let (gpus, demand) = (self.gpus(), self.demand());
        let constraints = Constraints {
            begin,
            // The job is over by its deadline, also if it starts as late as promised. Only its resources are kept longer.
            deadline: self
                .deadline
                .map(|at| at + self.cleanup_time(setup.cleanup_time) - setup.promise_slack(&self.queue)),
            // Idle processors come without GPUs.
            in_window_only: self.submission.no_opportunistic || setup.opportunistic.is_none() || gpus > 0,
            restartable: self.submission.restartable,
            ..Constraints::NONE
        };
        let user = Some(self.uid);
        // Those of a resizable job outlast a policy that resizes none.
        let resizes = self.submission.resizable.is_some()
            || setup.queues.get(queue).is_some_and(|queue| queue.policy.needs().resizing);
        // Whoever changes the GPUs of a queue, or a request, has checked that.
        let demand_of = |queue: &Queue| queue.device_demand(&self.submission).ok().flatten();
        let devices = setup.queues.get(queue).and_then(demand_of);
        let queue = u32::try_from(queue).ok();
        Request {
            user,
            devices,
            group: self.group,
            queue,
            sizes: resizes.then(|| self.sizes()),
            constraints,
            ..Request::new(self.number, at, self.planned(setup.cleanup_time), demand)
        }
    }
}
