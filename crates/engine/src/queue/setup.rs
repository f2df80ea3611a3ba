//! The setup of the engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use miserly_core::{
    Calendar, Charge, Driver, Entry, EventOrder, Host, JobClasses, JobId, Ledger, Machine,
    OpportunisticConfig, Rule, Span, System,
};
use miserly_policies::{PolicySpec, Promises};
use miserly_saved::ticks;
use serde::{Deserialize, Serialize};

use crate::attempt::waiting_shims::WaitingShimLimits;
use crate::queue::guarded_policy::GuardedPolicy;
use crate::queue::saved_queue::{SavedQueue, opportunistic};
use crate::{
    Amounts, PoolStep, QueueGpus, QueueUsers, Reservation, SavedLedgerState, Topology, UserLimits, amounts,
    resources,
};

/// The machine and its queues, from the configuration; and as stored, with the promises of its jobs under it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Setup {
    /// The queues, in order; at least one.
    pub queues: Vec<Queue>,
    /// The processors for jobs, by number: at least as many as the pools have together.
    pub cpus: Vec<u32>,
    /// The number of GPUs for jobs. Their indexes begin with 0.
    #[serde(default)]
    pub gpus: u64,
    /// The cores and memory nodes of the machine.
    #[serde(default)]
    pub topology: Topology,
    /// Whether jobs in their windows get whole cores: requests are rounded up, and no two jobs share a core.
    #[serde(default)]
    pub whole_cores: bool,
    /// The processors for opportunistic jobs, by number.
    pub opportunistic_cpus: Vec<u32>,
    /// The grace period: the time before the end of a window at which the job is asked to end.
    #[serde(with = "ticks")]
    pub grace: Span,
    /// The cleanup time: the time after a window until its resources are free.
    #[serde(with = "ticks")]
    pub cleanup_time: Span,
    /// The time after which a stopped job resumes if no daemon runs.
    #[serde(with = "ticks")]
    pub orphan_resume_delay: Span,
    /// The resources for opportunistic jobs, if they are enabled.
    #[serde(default, with = "opportunistic")]
    pub opportunistic: Option<OpportunisticConfig>,
    /// How many shims wait for the windows of promised jobs.
    #[serde(default)]
    pub waiting_shims: WaitingShimLimits,
    /// The time for which finished jobs are kept; `None` means forever.
    #[serde(default, with = "ticks::optional")]
    pub keep_history: Option<Span>,
    /// The limits for the unfinished jobs of each user.
    #[serde(default)]
    pub user_limits: UserLimits,
    /// The reservations of operators. Their queues are the last ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<Reservation>,
}

/// The stored state of a queue besides that of its jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueState {
    /// The present capacity of its pool, if some of it is lost.
    pub capacity: Option<Amounts>,
    /// The state that its policy keeps besides that of jobs.
    pub state: SavedLedgerState,
    /// The name of its policy; unknown in the state of earlier versions.
    pub policy: Option<String>,
    /// The processors of its own, by number, if its policy chooses processors.
    pub own: Option<Vec<u32>>,
    /// The capacity of its pool over time; empty in the state of earlier versions.
    pub pool: Vec<PoolStep>,
    /// The lost GPUs, by index, if its policy plans them by class.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_gpus: Vec<u32>,
}

impl QueueState {
    /// Returns the stored state of a queue with these processors of its own.
    pub(crate) fn new(queue: &Queue, own: Option<&Vec<u32>>, ledger: &Ledger) -> QueueState {
        let capacity = ledger.machine().capacity();
        QueueState {
            capacity: (capacity != queue.pool.most()).then(|| amounts(&capacity)),
            state: SavedLedgerState::new(&ledger.state()),
            policy: Some(queue.policy.descriptor().name.to_owned()),
            own: own.cloned(),
            pool: queue.steps(),
            lost_gpus: queue.lost_gpus(ledger),
        }
    }

    /// Returns the state for a configured queue. Lost capacity counts only if the pool is the same.
    #[must_use]
    pub(crate) fn over(self, queue: &Queue) -> QueueState {
        let same = self.pool.is_empty() || self.pool == queue.steps();
        QueueState { capacity: self.capacity.filter(|_| same), ..self }
    }
}

/// A queue.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(into = "SavedQueue", try_from = "SavedQueue")]
pub struct Queue {
    /// The name.
    pub name: String,
    /// The policy.
    pub policy: PolicySpec,
    /// The capacity of the pool over time.
    pub pool: Calendar,
    /// The job classes of policy `lsf`, if there are any.
    pub classes: Option<Arc<JobClasses>>,
    /// What its jobs cost in the usage; `None` if as much as they have processors.
    pub charge: Option<ChargeTerms>,
    /// The GPUs that its jobs may have, if more is known than their number.
    pub gpus: Option<Arc<QueueGpus>>,
    /// The terms for its jobs.
    pub terms: QueueTerms,
}

/// What the resources of jobs cost in the usage of their users and groups, in millionths of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ChargeTerms {
    /// That of a processor.
    pub cpus: u64,
    /// That of a GPU.
    pub gpus: u64,
    /// That of a GiB of memory.
    pub memory: u64,
}

impl From<ChargeTerms> for Charge {
    fn from(ChargeTerms { cpus, gpus, memory }: ChargeTerms) -> Charge {
        Charge { cpus, gpus, memory }
    }
}

/// The terms of a queue for its jobs, as a configuration sets them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct QueueTerms {
    /// The default time limit; `None` if a job has to set one.
    #[serde(default, with = "ticks::optional")]
    pub default_time: Option<Span>,
    /// The longest time limit.
    #[serde(default, with = "ticks::optional")]
    pub most_time: Option<Span>,
    /// The default memory of a job, in kilobytes.
    pub default_memory: u64,
    /// The users of the queue; `None` if every user may use it.
    #[serde(default, rename = "only")]
    pub users: Option<QueueUsers>,
    /// Whether its jobs have their processors for themselves, also while these are idle.
    #[serde(default)]
    pub strict: bool,
    /// Whether users may pause their jobs in it.
    #[serde(default = "yes", skip_serializing_if = "bool::clone")]
    pub pause: bool,
    /// The slack of promises: the time from the planned start of a job to the latest start that it is promised.
    ///
    /// An earlier version gave its promises without slack. New ones have it.
    #[serde(default = "promise_slack", with = "ticks")]
    pub promise_slack: Span,
    /// What happens to jobs that use almost no processor time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleTerms>,
}

/// What happens to idle jobs: to those that use almost no processor time in their windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct IdleTerms {
    /// The time after which such a job is idle.
    #[serde(with = "ticks")]
    pub after: Span,
    /// Whether it is ended then. Else it is only warned.
    pub ends: bool,
}

const fn yes() -> bool {
    true
}

const fn promise_slack() -> Span {
    QueueTerms::PROMISE_SLACK
}

impl Default for QueueTerms {
    fn default() -> QueueTerms {
        QueueTerms {
            default_time: None,
            most_time: None,
            default_memory: 0,
            users: None,
            strict: false,
            pause: true,
            promise_slack: QueueTerms::PROMISE_SLACK,
            idle: None,
        }
    }
}

impl QueueTerms {
    /// The slack of promises in a queue that sets none.
    pub const PROMISE_SLACK: Span = Span::from_ticks(2_000_000);
}

impl Queue {
    /// Returns the pool as a machine.
    pub fn machine(&self) -> Machine {
        let machine = pool_machine(&self.name, &self.pool).with_classes(self.classes.clone());
        let devices = self.classed_gpus().and_then(|gpus| gpus.table().ok()).map(Arc::new);
        machine.with_charge(self.charge.map(Charge::from)).with_devices(devices)
    }

    /// Returns the stored form of the pool.
    pub(crate) fn steps(&self) -> Vec<PoolStep> {
        self.pool.steps().map(|(at, amount)| PoolStep(at, amounts(&amount))).collect()
    }

    /// Returns whether its policy heeds earliest starts and deadlines.
    pub fn knows_begin(&self) -> bool {
        self.policy.needs().begin_and_deadline && self.policy.promises() == Promises::EveryJob
    }

    /// Returns whether its policy takes running jobs off their processors.
    pub(crate) fn takes_processors(&self) -> bool {
        let needs = self.policy.needs();
        needs.time_slices || needs.resizing || needs.suspension || needs.requeue
    }

    /// Returns whether its policy decides which processors a job has.
    pub fn names_pes(&self) -> bool {
        self.policy.needs().named_processors
    }

    /// Returns the policy over a ledger of jobs and the stored state of the queue.
    ///
    /// # Errors
    /// If more resources are allocated to the jobs than the pool has.
    ///
    /// # Panics
    /// If the policy cannot run on the pool. The configuration checks that.
    pub fn driver(&self, jobs: Vec<(JobId, Entry)>, kept: &QueueState) -> Result<Driver, Rule> {
        let machine = self.machine();
        let lost = self.classed_gpus().map(|gpus| gpus.cells_of(&kept.lost_gpus.iter().copied().collect()));
        let lost: Vec<_> = lost.into_iter().flatten().collect();
        let table = machine.devices().map(|table| Arc::new(table.clone().with_lost(&lost)));
        let mut ledger = Ledger::restored(machine.with_devices(table), jobs)?;
        if let Some(capacity) = kept.capacity {
            ledger = ledger.with_capacity(resources(capacity))?;
        }
        let mut ledger = ledger.with_state(kept.state.state());
        ledger.track();
        Ok(self.driver_over(ledger))
    }

    /// Returns a new policy over a ledger.
    pub(crate) fn driver_over(&self, ledger: Ledger) -> Driver {
        let policy = self.policy.build(ledger.machine(), 0).expect("the configuration was checked");
        Driver::new(ledger, Box::new(GuardedPolicy::new(policy)), EventOrder::Batched)
    }
}

/// Returns a pool as a machine of one host.
pub(crate) fn pool_machine(name: &str, pool: &Calendar) -> Machine {
    if pool.varies() {
        return Machine::pool(name.to_owned(), pool.clone());
    }
    Machine::new(vec![Host { name: name.to_owned(), capacity: pool.most() }])
}

impl Setup {
    /// Returns the processors of each queue whose policy chooses processors: the highest ones, for the first such queue.
    ///
    /// The policy counts them from 0. The other queues share the rest.
    pub(crate) fn own_cpus(&self) -> BTreeMap<String, Vec<u32>> {
        let mut left = self.cpus.clone();
        left.sort_unstable();
        let mut own = BTreeMap::new();
        for queue in self.queues.iter().filter(|queue| queue.names_pes()) {
            let wanted = usize::try_from(queue.pool.most().cpus_count().get()).unwrap_or(usize::MAX);
            own.insert(queue.name.clone(), left.split_off(left.len().saturating_sub(wanted)));
        }
        own
    }

    /// Returns the position of a queue.
    pub(crate) fn position(&self, queue: &str) -> Option<usize> {
        self.queues.iter().position(|other| other.name == queue)
    }

    /// Returns the queue with a name.
    pub(crate) fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues.iter().find(|queue| queue.name == name)
    }

    /// Returns the slack of promises in a queue.
    pub(crate) fn promise_slack(&self, queue: &str) -> Span {
        self.queue(queue).map_or(Span::ZERO, |queue| queue.terms.promise_slack)
    }

    /// Returns the queues over their jobs, in order, and over their stored states.
    ///
    /// # Errors
    /// The first queue whose jobs hold more than its pool has.
    pub(crate) fn system(
        &self,
        entries: Vec<Vec<(JobId, Entry)>>,
        mut states: BTreeMap<String, QueueState>,
    ) -> Result<System, &Queue> {
        let mut queues = vec![];
        for (queue, entries) in self.queues.iter().zip(entries) {
            let state = states.remove(&queue.name).unwrap_or_default().over(queue);
            queues.push(queue.driver(entries, &state).map_err(|_| queue)?);
        }
        Ok(match self.opportunistic {
            Some(config) => System::new(queues).with_opportunistic(config),
            None => System::new(queues),
        })
    }
}
