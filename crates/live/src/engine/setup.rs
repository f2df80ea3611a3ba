//! What the engine is set up with.

use std::collections::BTreeMap;

use miserly_core::{Calendar, Driver, Entry, Filler, Instants, JobId, Ledger, Machine, Rule, Span, System};
use miserly_policies::PolicySpec;

use super::{Amounts, SavedLedgerState, amounts, resources};

/// The machine and its queues, as the configuration has them.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The queues, in order; at least one.
    pub queues: Vec<Queue>,
    /// The processors for jobs, by number: at least as many as the pools have together.
    pub cpus: Vec<u32>,
    /// The processors on which jobs may run ahead of their windows, by number: all that there are.
    pub early_cpus: Vec<u32>,
    /// So long before the end of its window a job is told to end.
    pub grace: Span,
    /// So long after the end of its window a job's resources are still kept for it: until it is gone for certain.
    pub handover: Span,
    /// So long a stopped job stays stopped when there is no daemon.
    pub alone: Span,
    /// What jobs may use ahead of their windows, if they may.
    pub early: Option<Filler>,
    /// So long jobs that have ended are remembered; none, for ever.
    pub keep_history: Option<Span>,
}

/// What the ledger of a queue has beside its jobs, as it is written down.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Kept {
    /// What its pool has, if that lacks something.
    pub capacity: Option<Amounts>,
    /// The state that its policy keeps besides that of jobs.
    pub state: SavedLedgerState,
    /// The name of its policy; not known of what earlier versions wrote down.
    pub policy: Option<String>,
    /// The processors that it has for itself, by number, if its policy decides which of them a job has.
    pub own: Option<Vec<u32>>,
    /// What its pool has from when on; nothing of what earlier versions wrote down.
    pub pool: Vec<(i64, Amounts)>,
}

impl Kept {
    /// What this queue, which has these processors for itself, and its ledger have.
    pub(super) fn of(queue: &Queue, own: Option<&Vec<u32>>, ledger: &Ledger) -> Kept {
        let capacity = ledger.machine().capacity();
        Kept {
            capacity: (capacity != queue.pool.most()).then(|| amounts(&capacity)),
            state: SavedLedgerState::new(&ledger.state()),
            policy: Some(queue.policy.descriptor().name.to_owned()),
            own: own.cloned(),
            pool: queue.steps(),
        }
    }

    /// The same for this queue: what a pool lacks, it lacks as long as it is the same pool.
    #[must_use]
    pub(super) fn over(self, queue: &Queue) -> Kept {
        let same = self.pool.is_empty() || self.pool == queue.steps();
        Kept { capacity: self.capacity.filter(|_| same), ..self }
    }
}

/// A queue.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Its policy.
    pub policy: PolicySpec,
    /// What its pool has, over time.
    pub pool: Calendar,
    /// For how long a job runs that does not say; none, where it has to.
    pub default_time: Option<Span>,
    /// For how long a job may run at most.
    pub most_time: Option<Span>,
    /// How much memory a job has that does not say, kilobytes.
    pub default_memory: u64,
    /// Who may use it, by number; everybody, where nobody is named.
    pub users: Vec<u32>,
}

impl Queue {
    /// Its pool as a machine.
    pub fn machine(&self) -> Machine {
        match self.pool.next(miserly_core::Time::ZERO) {
            Some(_) => Machine::pool(self.name.clone(), self.pool.clone()),
            None => {
                Machine::of(vec![miserly_core::Host { name: self.name.clone(), capacity: self.pool.most() }])
            }
        }
    }

    /// What its pool has from when on, ticks, as that is written down.
    pub(super) fn steps(&self) -> Vec<(i64, Amounts)> {
        self.pool.steps().map(|(at, amount)| (at.ticks(), amounts(&amount))).collect()
    }

    /// Returns whether its policy heeds earliest starts.
    pub fn knows_begin(&self) -> bool {
        self.policy.needs().begin_and_deadline
    }

    /// Returns whether its policy decides which processors a job has.
    pub fn names_pes(&self) -> bool {
        self.policy.needs().named_processors
    }

    /// Its policy over a ledger of these jobs, with what is kept beside them.
    ///
    /// # Errors
    /// If the jobs hold more than the pool has.
    ///
    /// # Panics
    /// If the policy cannot run on such a machine, which the configuration has checked.
    pub fn driver(&self, jobs: Vec<(JobId, Entry)>, kept: Kept) -> Result<Driver, Rule> {
        let mut ledger = Ledger::restored(self.machine(), jobs)?;
        if let Some(capacity) = kept.capacity {
            ledger = ledger.with_capacity(resources(capacity))?;
        }
        let mut ledger = ledger.with_state(kept.state.state());
        ledger.track();
        Ok(self.driver_over(ledger))
    }

    /// Its policy, made anew, over this ledger.
    pub(crate) fn driver_over(&self, ledger: Ledger) -> Driver {
        let policy = self.policy.build(ledger.machine(), 0).expect("the configuration was checked");
        Driver::new(ledger, policy, Instants::Batch)
    }
}

impl Setup {
    /// The processors of each queue whose policy decides which of them a job has: the highest, for the first such queue. What that
    /// policy calls 0 is the first of these. The others share what is left.
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

    /// All queues, with nobody in them.
    ///
    /// # Errors
    /// None: an empty ledger holds nothing.
    pub fn system(&self) -> Result<System, Rule> {
        let empty = |queue: &Queue| queue.driver(vec![], Kept::default());
        let queues: Result<_, _> = self.queues.iter().map(empty).collect();
        Ok(self.system_of(queues?))
    }

    /// These queues, with early work over them, if there is any.
    pub(crate) fn system_of(&self, queues: Vec<Driver>) -> System {
        match self.early {
            Some(filler) => System::new(queues).filling(filler),
            None => System::new(queues),
        }
    }
}
