//! The durable state for readers on other threads.
//!
//! The engine publishes a snapshot after each batch. A reader never waits for the engine, nor the
//! engine for a reader: records are shared, and the engine copies those that it changes later.

use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use jiff::Timestamp;
use miserly_api::model::{Problem, ProblemCode, Submission};
use miserly_core::{Driver, Entry, Ledger, Machine, Resources, Time};

use crate::cpus::numbered::QueueCpus;
use crate::dependency::expected_ends::{ExpectedEnds, limit_end};
use crate::job::record_map::RecordMap;
use crate::job::unrecorded::UnrecordedJobs;
use crate::limits::places::Sums;
use crate::limits::used_time::UsedTime;
use crate::queue::stopped::StoppedQueues;
use crate::values::EngineValues;
use crate::{
    Caller, DaemonInfo, DaemonReply, DaemonRequest, EndedJobs, Engine, Journal, Launcher, Now, Queue,
    QueueState, Setup,
};

/// The state of the engine at one instant: that of the last batch that is durable.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The number of the last commit.
    pub(crate) journal: i64,
    pub(crate) jobs: RecordMap,
    /// The jobs without a usable record.
    pub(crate) unrecorded: Arc<UnrecordedJobs>,
    /// The places that the jobs in ledgers have.
    pub(crate) taken: Arc<Sums>,
    /// The processor time of windows that have ended.
    pub(crate) used_time: UsedTime,
    /// The time of GPUs in windows that have ended.
    pub(crate) used_gpu_time: UsedTime,
    pub(crate) setup: Arc<Setup>,
    pub(crate) info: Arc<DaemonInfo>,
    /// The queues, as in the setup.
    pub(crate) queues: Vec<QueueSnapshot>,
    /// The processors of the queues by number.
    pub(crate) cpus: Arc<QueueCpus>,
    pub(crate) stopped: StoppedQueues,
    pub(crate) values: EngineValues,
    pub(crate) began: Timestamp,
    pub(crate) configuration_problem: Option<String>,
    /// The instant of the next event that no input announces.
    pub(crate) next_due: Option<Time>,
    /// The first promised start for which no shim waits.
    pub(crate) needs_daemon: Option<Time>,
}

/// The state of one queue beside its jobs.
#[derive(Clone, Debug)]
pub(crate) struct QueueSnapshot {
    pub(crate) machine: Machine,
    pub(crate) free: Resources,
    /// The number of slots in use, if the queue is time-sliced.
    pub(crate) slots: Option<u64>,
    pub(crate) running: u64,
    /// The number of jobs that have not finished.
    pub(crate) jobs: u64,
    pub(crate) state: QueueState,
}

impl QueueSnapshot {
    fn new(ledger: &Ledger, jobs: usize, state: QueueState) -> QueueSnapshot {
        QueueSnapshot {
            machine: ledger.machine().clone(),
            free: ledger.free(),
            slots: ledger.matrix().map(|matrix| matrix.used() as u64),
            running: ledger.running_count() as u64,
            jobs: jobs as u64,
            state,
        }
    }
}

/// The latest snapshot, for any thread.
#[derive(Clone)]
pub struct Snapshots {
    latest: Arc<RwLock<Arc<Snapshot>>>,
    listener: Arc<OnceLock<Listener>>,
}

/// A function that is called after each publication.
type Listener = Box<dyn Fn() + Send + Sync>;

impl fmt::Debug for Snapshots {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Snapshots").field("latest", &self.latest).finish_non_exhaustive()
    }
}

impl Snapshots {
    pub(crate) fn new(snapshot: Snapshot) -> Snapshots {
        Snapshots { latest: Arc::new(RwLock::new(Arc::new(snapshot))), listener: Arc::default() }
    }

    /// Returns the latest snapshot.
    pub fn latest(&self) -> Arc<Snapshot> {
        Arc::clone(&self.latest.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls `listener` after each publication, on the thread of the engine: it must not wait. There is one listener;
    /// a second one is ignored.
    pub fn listen(&self, listener: impl Fn() + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener));
    }

    /// Replaces the snapshot. The lock is held for the exchange of two pointers.
    fn publish(&self, snapshot: Snapshot) {
        let snapshot = Arc::new(snapshot);
        let before = {
            let mut latest = self.latest.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *latest, snapshot)
        };
        drop(before);
        if let Some(listener) = self.listener.get() {
            listener();
        }
    }
}

impl Snapshot {
    /// Returns the state of an engine that has not loaded any.
    pub(crate) fn empty(setup: &Arc<Setup>, info: &Arc<DaemonInfo>) -> Snapshot {
        Snapshot {
            journal: 0,
            jobs: RecordMap::default(),
            unrecorded: Arc::default(),
            taken: Arc::default(),
            used_time: UsedTime::of_cpus(),
            used_gpu_time: UsedTime::of_gpus(),
            setup: Arc::clone(setup),
            info: Arc::clone(info),
            queues: vec![],
            cpus: Arc::default(),
            stopped: StoppedQueues::default(),
            values: EngineValues::default(),
            began: Timestamp::UNIX_EPOCH,
            configuration_problem: None,
            needs_daemon: None,
            next_due: None,
        }
    }

    /// Returns the reply to a request that only reads.
    ///
    /// `ended` has the finished jobs, as they were at this snapshot or later. `check` is
    /// [`Launcher::check`].
    ///
    /// # Errors
    /// The reason why there is no reply. Any other request is an error.
    pub fn answer(
        &self,
        now: Now,
        caller: &Caller,
        request: &DaemonRequest,
        ended: &impl EndedJobs,
        check: &dyn Fn(&Submission, &str) -> Result<(), Problem>,
    ) -> Result<DaemonReply, Problem> {
        match request {
            DaemonRequest::Quote(submission) => {
                self.quote(now, caller, submission, check, ended).map(|(quote, _)| DaemonReply::Quote(quote))
            }
            DaemonRequest::WhatIf(_) | DaemonRequest::Shadow(_) => Err(Problem::new(
                ProblemCode::Internal,
                "a question about other policies reached a reader without them",
            )),
            DaemonRequest::Jobs(filter) => self.list_jobs(now, caller, filter, ended),
            DaemonRequest::Job(job) | DaemonRequest::Wait(job) => self.show_job(now, caller, *job, ended),
            DaemonRequest::Reservations => Ok(DaemonReply::Reservations(self.reservations(now))),
            DaemonRequest::Pools => Ok(DaemonReply::Pools(self.pools(now))),
            DaemonRequest::Limits => Ok(DaemonReply::Limits(Box::new(self.limits_of(now, caller)))),
            DaemonRequest::Status => Ok(DaemonReply::Status(Box::new(self.status(now)))),
            _ => Err(Problem::new(ProblemCode::Internal, "a request that changes jobs reached a reader")),
        }
    }

    /// Returns the number of the last commit. A later snapshot of a changed state has a higher one, also across restarts.
    pub fn journal(&self) -> i64 {
        self.journal
    }

    /// Returns whether a job has not finished, also if it has no usable record.
    pub fn is_unfinished(&self, job: i64) -> bool {
        self.jobs.get(job).is_some() || self.unrecorded.contains(job)
    }

    /// Returns a queue of the setup by name, with its state.
    pub(crate) fn queue_state(&self, name: &str) -> Option<&QueueSnapshot> {
        self.queues.get(self.setup.position(name)?)
    }

    fn ledger_entry(&self, number: i64) -> Option<Entry> {
        self.jobs.get(number)?.ledger_entry()
    }
}

impl ExpectedEnds for Snapshot {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn is_unfinished(&self, number: i64) -> bool {
        Snapshot::is_unfinished(self, number)
    }

    fn expected_end(&self, number: i64) -> Option<Time> {
        limit_end(&self.ledger_entry(number)?)
    }

    fn promised_end(&self, number: i64) -> Option<Time> {
        crate::dependency::expected_ends::promised_end(&self.ledger_entry(number)?)
    }
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Returns the latest snapshots, for other threads.
    pub fn snapshots(&self) -> Snapshots {
        self.snapshots.clone()
    }

    /// Returns a snapshot of the present state, which may not be durable yet.
    pub(crate) fn current(&self) -> Snapshot {
        let states = self.queue_states();
        let queue = |(setup, driver): (&Queue, &Driver)| {
            let state = states.get(&setup.name).cloned().unwrap_or_default();
            QueueSnapshot::new(driver.ledger(), self.jobs.count_in(&setup.name), state)
        };
        Snapshot {
            journal: self.journal.last_commit(),
            jobs: self.jobs.all().clone(),
            unrecorded: Arc::clone(&self.unrecorded),
            taken: Arc::clone(self.dependencies.taken()),
            used_time: self.used_time.clone(),
            used_gpu_time: self.used_gpu_time.clone(),
            setup: Arc::clone(self.setup.shared()),
            info: Arc::clone(&self.info),
            queues: self.setup.queues.iter().zip(self.system.queues()).map(queue).collect(),
            cpus: Arc::clone(self.cpus.numbered()),
            stopped: self.stopped.clone(),
            values: self.values.clone(),
            began: self.began,
            configuration_problem: self.setup.problem().cloned(),
            needs_daemon: self.shims.needs_daemon,
            next_due: self.next_due(),
        }
    }

    /// Publishes the present state, which is durable.
    pub(crate) fn publish(&self) {
        self.snapshots.publish(self.current());
    }

    /// Answers a request that only reads from the durable state.
    pub(crate) fn answer(
        &self,
        now: Now,
        caller: &Caller,
        request: &DaemonRequest,
    ) -> Result<DaemonReply, Problem> {
        let check = |submission: &Submission, name: &str| self.launcher.check(submission, name);
        self.snapshots.latest().answer(now, caller, request, &self.journal, &check)
    }
}
