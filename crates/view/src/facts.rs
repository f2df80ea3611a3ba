//! The facts about a machine and its jobs at an instant.

use std::sync::Arc;

use miserly_api::model::Slice;
use serde::Serialize;

use crate::{Account, Clock};

/// The distance between the numbers of jobs in several runs of one log: each run has numbers of its own.
pub const RUN_NUMBERS: i64 = 1_000_000_000_000;

/// A machine and its jobs at an instant.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The instant.
    pub now: i64,
    /// How instants are written.
    pub clock: Clock,
    /// The name of the machine or of the run.
    pub title: String,
    /// Whether the facts change as time goes by.
    pub live: bool,
    /// Whether they are of an instant before the last known one: [`Facts::at`].
    pub earlier: bool,
    /// The user for whom they are shown, by number; `None` if jobs have no owner here.
    pub uid: Option<u32>,
    /// The pools.
    pub pools: Vec<PoolFacts>,
    /// The unfinished jobs, and those that ended, as far as they are known.
    pub jobs: Vec<Arc<Job>>,
    /// Promises and forecasts so far.
    pub account: Account,
}

/// A pool of processors with a policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PoolFacts {
    /// The name of the queue.
    pub name: String,
    /// The policy with its parameters.
    pub policy: String,
    /// The jobs to which the policy promises a start, in words.
    pub promises: String,
    /// The mistake for which the queue is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The present processors.
    pub cpus: u64,
    /// The processors of jobs in their windows.
    pub held: u64,
    /// The present memory, bytes; 0 if memory is not accounted.
    pub memory: u64,
    /// The memory of jobs in their windows, bytes.
    pub memory_held: u64,
    /// The processors that the pool has at other times: offline now, lost, or absent by its calendar. They are not in `cpus`.
    pub offline: u64,
    /// Whether jobs of other pools may have its processors, too, so that its jobs alone do not tell what is free.
    #[serde(skip)]
    pub shared: bool,
    /// The processors by number, as rising ranges with both ends; empty if they have none, or if other pools have them too.
    #[serde(skip)]
    pub numbers: Vec<(u32, u32)>,
    /// Those of `numbers` that no job can use now.
    #[serde(skip)]
    pub numbers_offline: Vec<(u32, u32)>,
    /// The hosts; empty if the pool is on one host, or if the hosts are not known.
    #[serde(skip)]
    pub hosts: Vec<HostFacts>,
    /// The free capacity from now on; empty if that is not known.
    #[serde(skip)]
    pub slices: Vec<Slice>,
}

/// A host of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// The name.
    pub name: String,
    /// Why no job can start there, in words; `None` if jobs can.
    pub unusable: Option<String>,
    /// The number of its first processor, if the processors of the pool are numbered host by host.
    pub first: Option<u32>,
    /// The processors for jobs.
    pub cpus: u64,
    /// The processors of jobs; `None` if only the jobs themselves are known.
    pub held: Option<u64>,
    /// Whether the idle processors are reserved.
    pub reserved: bool,
    /// The memory, bytes; 0 if it is not accounted.
    pub memory: u64,
    /// The memory of jobs, bytes.
    pub memory_held: u64,
}

/// A job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Job {
    /// The number.
    pub number: i64,
    /// The number, with the index in an array.
    pub label: String,
    /// The number of its array, and its index there.
    #[serde(skip)]
    pub array: Option<(i64, u32)>,
    /// The name, without control characters.
    pub name: String,
    /// The comment of its user, without control characters.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// The name of the user, without control characters.
    pub user: String,
    /// The number of the user.
    pub uid: Option<u32>,
    /// The pool, by its place in [`Facts::pools`].
    pub pool: usize,
    /// The requested processors.
    pub procs: u64,
    /// The requested memory, bytes; 0 if it is not known.
    pub memory: u64,
    /// The time limit, milliseconds.
    pub limit: i64,
    /// The state.
    pub state: State,
    /// A word for the state.
    pub word: String,
    /// The submission.
    pub submitted: i64,
    /// The earliest start, if its user wants one.
    #[serde(skip)]
    pub begin: Option<i64>,
    /// The start, if it started.
    pub start: Option<i64>,
    /// The end: the actual one, or the latest of a job that runs.
    pub end: Option<i64>,
    /// The latest start by the present plan of a promised job.
    pub promised: Option<i64>,
    /// The latest start that was promised.
    pub promised_first: Option<i64>,
    /// Whether its promise is at risk, or was not kept.
    pub unkept: bool,
    /// The start that the policy plans. It is no promise.
    pub planned: Option<i64>,
    /// The likely start: the median, the bound of 80 % and that of 95 %. `None` if the bounds are not calibrated.
    pub likely: Option<[i64; 3]>,
    /// The processors by number, as ranges, if they are known.
    pub cpus: Vec<(u32, u32)>,
    /// The hosts by name, if the pool has several. They are in the map of the hosts.
    #[serde(skip)]
    pub hosts: Vec<String>,
    /// The word for the reason of its start; empty if that is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why it does not run.
    pub causes: Vec<Cause>,
}

impl Job {
    /// Returns whether the job ended without success.
    pub fn has_failed(&self) -> bool {
        self.state == State::Ended && self.word != "done"
    }

    /// Returns the number and the name; the user of a job of a log, which has no name but the reason of its start.
    pub fn title(&self) -> String {
        let name = if self.name == self.reason { &self.user } else { &self.name };
        format!("{} {name}", self.label).trim().to_owned()
    }
}

/// The state of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It waits, and has no place in the queue.
    Held,
    /// It waits.
    #[default]
    Waiting,
    /// It runs on idle processors before its start.
    Opportunistic,
    /// It ran on idle processors before its start, and is stopped.
    Parked,
    /// It runs in its window.
    Running,
    /// It is suspended in its window.
    Suspended,
    /// It has ended.
    Ended,
}

impl Facts {
    /// Returns the first instant and the last one at which the machine can be shown.
    pub fn range(&self) -> (i64, i64) {
        let first = self.jobs.iter().map(|job| job.submitted).min().unwrap_or(self.now);
        (first.min(self.now), self.now)
    }

    /// Returns whether a job is of the user for whom this is shown.
    pub fn is_own(&self, job: &Job) -> bool {
        self.uid.is_some() && job.uid == self.uid
    }

    /// Returns whether the pools are runs of one log, whose jobs have the same numbers in each.
    pub fn is_of_runs(&self) -> bool {
        !self.live && self.uid.is_none()
    }

    /// Parses an instant as [`Clock::parse`], of the time in which the machine can be shown.
    ///
    /// # Errors
    /// If the text is no instant, or the instant is outside of that time.
    pub fn instant(&self, text: &str, shown: i64) -> Result<i64, String> {
        let at = self.clock.parse(text, shown)?;
        let (first, last) = self.range();
        let exact = |at: i64| self.clock.exact(at);
        match at {
            _ if at < first => Err(format!("{} is before the first job: {}", exact(at), exact(first))),
            _ if at > last => Err(format!("{} is after the last known instant: {}", exact(at), exact(last))),
            _ => Ok(at),
        }
    }

    /// Returns the facts of a test: these jobs in one pool, at the start of a log.
    #[cfg(test)]
    pub(crate) fn of_jobs(cpus: u64, jobs: impl IntoIterator<Item = Job>) -> Facts {
        Facts {
            now: 0,
            clock: Clock::SinceStart,
            title: String::new(),
            live: true,
            earlier: false,
            uid: None,
            pools: vec![PoolFacts { cpus, ..PoolFacts::default() }],
            jobs: jobs.into_iter().map(Arc::new).collect(),
            account: Account::default(),
        }
    }
}

impl State {
    /// Returns whether the start is still to come.
    pub fn is_before_start(self) -> bool {
        matches!(self, State::Held | State::Waiting | State::Opportunistic | State::Parked)
    }

    /// Returns whether the job has resources of its own.
    pub fn holds(self) -> bool {
        matches!(self, State::Running | State::Suspended)
    }
}

/// Why a job does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Cause {
    /// It is held.
    Held,
    /// Its earliest start has not come.
    Begin {
        /// The earliest start.
        at: i64,
    },
    /// Other jobs have to end first.
    After {
        /// The other jobs.
        jobs: Vec<i64>,
    },
    /// As many jobs of its array as may run at the same time have begun or have a promise.
    ArrayLimit {
        /// The number of these jobs.
        limit: u32,
    },
    /// Other jobs have all places under a limit of its user.
    UserLimit {
        /// The limit.
        limit: String,
        /// The most jobs or processors at the same time.
        most: u64,
    },
    /// Too few processors are free.
    Cpus {
        /// The number that is missing.
        missing: u64,
        /// The number that is free.
        #[serde(skip)]
        free: u64,
    },
    /// Too few GPUs are free.
    Gpus {
        /// The number that is missing.
        missing: u64,
        /// The number that is free.
        #[serde(skip)]
        free: u64,
    },
    /// Too little memory is free.
    Memory {
        /// The missing bytes.
        missing: u64,
        /// The free bytes.
        #[serde(skip)]
        free: u64,
    },
    /// No slot has room for it.
    Slots,
    /// The free resources are reserved for other jobs.
    Reserved,
    /// A reservation of an operator has the resources, or has not begun for its own job.
    Reservation {
        /// Its name.
        name: String,
        /// Its beginning.
        from: i64,
        /// Its end.
        to: i64,
    },
    /// The machine is short of memory.
    MemoryShort,
    /// There was room for it, and why it waited is not stored.
    Room {
        /// The processors that were free.
        free: u64,
    },
    /// Another scheduler gives a reason.
    Stated {
        /// The scheduler.
        by: String,
        /// Its word.
        reason: String,
    },
}
