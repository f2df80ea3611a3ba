//! The facts about a machine and its jobs at an instant.

use std::borrow::Cow;
use std::sync::Arc;

use miserly_api::model::Slice;
use miserly_scene::{Clock, Job, Pool, Schedule};
use serde::Serialize;

use crate::{Account, parse_instant};

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

    /// Returns what a chart shows of it.
    pub fn schedule(&self) -> Schedule<'_> {
        let hosts = |pool: &PoolFacts| {
            pool.hosts.iter().filter_map(|host| Some((host.first?, host.name.clone()))).collect()
        };
        let pools = self.pools.iter().map(|pool| Pool {
            hosts: hosts(pool),
            promises: !matches!(&*pool.promises, "" | "nothing"),
            ..Pool::new(&pool.name, pool.cpus)
        });
        Schedule {
            now: self.now,
            clock: self.clock.clone(),
            live: self.live,
            uid: self.uid,
            pools: pools.collect(),
            jobs: Cow::Borrowed(&self.jobs),
            queue: None,
        }
    }

    /// Returns whether the pools are runs of one log, whose jobs have the same numbers in each.
    pub fn is_of_runs(&self) -> bool {
        self.schedule().is_of_runs()
    }

    /// Parses an instant as [`parse_instant`] does, of the time in which the machine can be shown.
    ///
    /// # Errors
    /// If the text is no instant, or the instant is outside of that time.
    pub fn instant(&self, text: &str, shown: i64) -> Result<i64, String> {
        let at = parse_instant(&self.clock, text, shown)?;
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
