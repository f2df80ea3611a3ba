//! The ledger: the single source of truth for all allocations.

mod changes;

mod entry;
mod job_set;

mod names;

mod suspension;

mod progress;

mod matrix;

mod slots;

mod devices;

mod usage;

mod weights;

mod charges;

pub(crate) use changes::PartialAllocation;
use entry::Part;
pub use entry::{Entry, Expected, Holds, Promise, State};
use job_set::JobSet;
pub use matrix::{Matrix, Slicing, Slot};
use names::Names;
pub use progress::{Pace, Progress, span as span_of_work, work};
pub use usage::Usage;
pub use weights::{ResourceWeights, UsageWeights};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::devices::FreeDevices;
use crate::violation::Rule;
use crate::{
    BreachCause, Demand, FreeHosts, HostId, JobId, LedgerState, Machine, Persistent, Pes, Placement,
    PolicyState, Procs, Request, Resources, SlotId, Time,
};

/// All allocations and job states: an Ousterhout matrix over hosts, and the state of every job in
/// the system.
///
/// The matrix has one slot unless a policy slices time. All components read the ledger. Only the
/// driver and the [`Context`](crate::Context) of a policy change it, and every change is checked
/// first. Each change is O(shares of the job).
///
/// # Example
/// ```
/// use miserly_core::{Ledger, Machine, Resources};
///
/// let ledger = Ledger::new(Machine::plain(8));
/// assert_eq!(ledger.free(), Resources::cpus(8));
/// assert!(ledger.fit(&Resources::cpus(8).into()).is_some());
/// assert!(ledger.fit(&Resources::cpus(9).into()).is_none());
/// ```
#[derive(Clone, Debug)]
pub struct Ledger {
    machine: Machine,
    /// The free resources of each host.
    free: FreeHosts,
    /// The free devices, if the machine has any.
    devices: Option<Box<FreeDevices>>,
    /// The free processors of each host by number, if they are named.
    pes: Option<Names>,
    /// The slots of the only host, if its time is sliced. Otherwise every job is in slot 0.
    matrix: Option<Matrix>,
    /// The state that policies store for themselves.
    policy_state: PolicyState,
    /// The state that policies store for each host. It is empty while there is none.
    host_states: Vec<PolicyState>,
    /// The state that policies store for each user.
    user_states: BTreeMap<u32, PolicyState>,
    /// The decayed usage of users and groups, if the policy needs it.
    usage: Option<Box<Usage>>,
    /// The weights of resources in the usage, if it is not one of processors.
    weights: Option<Arc<UsageWeights>>,
    jobs: Vec<Option<Entry>>,
    admissions: u64,
    /// The number of decisions on the starts of jobs.
    decisions: u64,
    waiting: usize,
    running: JobSet,
    /// The number of running jobs that are [`released`](State::Running::released).
    released: usize,
    suspended: JobSet,
    overdue_seen: bool,
    /// The resources that jobs hold beyond the capacity, after a capacity loss. Only for a machine
    /// of one host.
    missing: Resources,
    /// The cause for which promises may be broken now.
    breach_cause: Option<BreachCause>,
    /// The jobs that changed, if changes are tracked.
    touched: Option<Vec<JobId>>,
}

impl Ledger {
    /// Returns an empty ledger of this machine.
    pub fn new(machine: Machine) -> Ledger {
        let free = FreeHosts::idle(&machine);
        let devices = machine.devices().map(|table| Box::new(FreeDevices::idle(table)));
        Ledger {
            machine,
            free,
            devices,
            pes: None,
            matrix: None,
            policy_state: PolicyState::EMPTY,
            host_states: vec![],
            user_states: BTreeMap::new(),
            usage: None,
            weights: None,
            jobs: vec![],
            admissions: 0,
            decisions: 0,
            waiting: 0,
            running: JobSet::default(),
            released: 0,
            suspended: JobSet::default(),
            overdue_seen: false,
            missing: Resources::NONE,
            breach_cause: None,
            touched: None,
        }
    }

    /// Returns the ledger with these restored jobs. No two of them share a handle or an admission
    /// number.
    ///
    /// # Errors
    /// If a host would be over-committed.
    pub fn restored(machine: Machine, jobs: Vec<(JobId, Entry)>) -> Result<Ledger, Rule> {
        let mut ledger = Ledger::new(machine);
        let names = |entry: &Entry| {
            let shares = entry.placement().map(Placement::shares).unwrap_or_default();
            shares.iter().any(|share| share.pes != Pes::Count)
        };
        if jobs.iter().any(|(_, entry)| names(entry)) {
            ledger.name_pes();
        }
        if jobs.iter().any(|(_, entry)| entry.placement().is_some_and(|place| place.slot != SlotId(0))) {
            ledger.ensure_time_slicing();
        }
        for (job, entry) in jobs {
            ledger.take_back(job, entry)?;
        }
        ledger.rebuild_slots();
        Ok(ledger)
    }

    /// Returns the ledger with this capacity of its only host, whatever jobs hold. It restores the
    /// state after a capacity loss.
    ///
    /// # Errors
    /// If the machine has several hosts.
    pub fn with_capacity(mut self, capacity: Resources) -> Result<Ledger, Rule> {
        self.set_capacity(capacity)?;
        Ok(self)
    }

    /// Starts a list of the jobs that change.
    pub fn track(&mut self) {
        self.touched.get_or_insert_default();
    }

    /// Returns the jobs that changed since the last call, each once. Jobs that have left the system
    /// are included.
    pub fn take_touched(&mut self) -> Vec<JobId> {
        let mut touched = self.touched.as_mut().map(std::mem::take).unwrap_or_default();
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    fn touch(&mut self, job: JobId) {
        if let Some(touched) = &mut self.touched {
            touched.push(job);
        }
    }

    /// Returns the machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Returns the free resources of all hosts together.
    pub fn free(&self) -> Resources {
        self.free.total()
    }

    /// Returns the resources that jobs hold beyond the capacity, after a capacity loss. When jobs
    /// release resources, this amount is not freed.
    pub fn missing(&self) -> Resources {
        self.missing
    }

    /// Returns the resources that jobs hold on all hosts together.
    pub fn held(&self) -> Resources {
        self.machine.capacity().plus(&self.missing).less(&self.free())
    }

    /// Returns the processors that jobs hold on all hosts together.
    pub fn held_cpus(&self) -> Procs {
        let all = self.machine.capacity().cpus_count() + self.missing.cpus_count();
        all.saturating_sub(self.free.total().cpus_count())
    }

    /// Returns the free resources of each host.
    pub fn free_hosts(&self) -> &FreeHosts {
        &self.free
    }

    /// Returns a placement for a job with this demand that could start now, by best fit as in
    /// [`FreeHosts`]. Returns `None` if it fits nowhere.
    pub fn fit(&self, demand: &Demand) -> Option<Placement> {
        match &self.devices {
            None => self.free.fit(&self.machine, demand),
            Some(devices) => self.machine.fit_with_devices(self.free.each(), |cell| devices.of(cell), demand),
        }
    }

    /// Returns a placement for a job of the ledger that could start now, by best fit. Returns
    /// `None` if it fits nowhere.
    ///
    /// # Panics
    /// If the job is not in the system.
    #[track_caller]
    pub fn fit_request(&self, job: JobId) -> Option<Placement> {
        self.fit(&self.machine.demand(self.request(job)))
    }

    /// Returns the value of this type that a policy stores for itself.
    pub fn policy_state<T: Persistent>(&self) -> T {
        self.policy_state.get()
    }

    /// Returns the value of this type that a policy stores for a host.
    pub fn host_state<T: Persistent>(&self, host: HostId) -> T {
        self.host_states.get(host.index()).map(PolicyState::get).unwrap_or_default()
    }

    /// Returns the value of this type that a policy stores for a user.
    pub fn user_state<T: Persistent>(&self, user: u32) -> T {
        self.user_states.get(&user).map(PolicyState::get).unwrap_or_default()
    }

    /// Returns the state that policies store besides that of jobs, for persistence.
    pub fn state(&self) -> LedgerState {
        let slots = self.matrix.iter().flat_map(Matrix::slots);
        let slots = slots.filter(|(_, row)| !row.state().is_empty());
        let mut policy = self.policy_state.clone();
        if let Some(usage) = &self.usage {
            policy.set(&**usage);
        }
        LedgerState {
            policy,
            hosts: self.host_states.clone(),
            slots: slots.map(|(slot, row)| (slot, row.state().clone())).collect(),
            users: self.user_states.iter().map(|(user, state)| (*user, state.clone())).collect(),
        }
    }

    /// Returns the ledger with this stored state. The state of a slot that is not used is dropped.
    #[must_use]
    pub fn with_state(mut self, state: LedgerState) -> Ledger {
        let LedgerState { mut policy, mut hosts, slots, users } = state;
        let usage: Usage = policy.get();
        policy.set(&Usage::default());
        self.usage = (usage != Usage::default()).then(|| Box::new(usage));
        hosts.truncate(self.machine.hosts().len());
        (self.policy_state, self.host_states) = (policy, hosts);
        self.user_states = users.into_iter().collect();
        for (slot, state) in slots {
            self.ensure_time_slicing();
            // The state of a slot is dropped with the slot.
            let _ = self.restore_slot_state(slot, state);
        }
        self
    }

    /// Returns the job, if it is in the system.
    pub fn get(&self, job: JobId) -> Option<&Entry> {
        self.jobs.get(job.index())?.as_ref()
    }

    /// Returns the job.
    ///
    /// # Panics
    /// If it is not in the system. The caller must use a valid handle.
    #[track_caller]
    pub fn entry(&self, job: JobId) -> &Entry {
        self.get(job).expect("the job is in the system")
    }

    /// Returns the request of the job.
    ///
    /// # Panics
    /// If the job is not in the system.
    #[track_caller]
    pub fn request(&self, job: JobId) -> &Request {
        &self.entry(job).request
    }

    /// Returns the waiting jobs, in the order of their admission.
    ///
    /// O(n log n): fine for rebuilding, and in a pass of a simple policy.
    pub fn waiting(&self) -> impl Iterator<Item = JobId> + '_ {
        let waits = |entry: &Entry| entry.state == State::Waiting;
        let jobs = (0..).map(JobId).zip(&self.jobs);
        self.by_admission(
            jobs.filter(move |(_, entry)| entry.as_ref().is_some_and(waits)).map(|(job, _)| job),
        )
    }

    /// Returns the running jobs, in the order of their admission.
    ///
    /// O(n log n): fine for rebuilding, and in a pass of a simple policy. Under sequential events
    /// a job may already be [`released`](State::Running::released). It is among these jobs until the
    /// event of its end, but its resources count as free. A sum of running processors has to leave
    /// such jobs out.
    pub fn running(&self) -> impl Iterator<Item = JobId> + '_ {
        self.by_admission(self.running.iter())
    }

    /// Returns the suspended jobs, in the order of their admission. O(n log n), for rebuilding a
    /// policy.
    pub fn suspended(&self) -> impl Iterator<Item = JobId> + '_ {
        self.by_admission(self.suspended.iter())
    }

    /// Returns the number of waiting jobs.
    pub fn waiting_count(&self) -> usize {
        self.waiting
    }

    /// Returns the number of running jobs.
    pub fn running_count(&self) -> usize {
        self.running.len()
    }

    /// Returns the number of running jobs that are [`released`](State::Running::released). O(1).
    pub fn released_count(&self) -> usize {
        self.released
    }

    /// Returns the number of suspended jobs.
    pub fn suspended_count(&self) -> usize {
        self.suspended.len()
    }

    /// Returns the running jobs in no order that is to be relied on. O(1) for each, without a sort.
    pub fn running_in_any_order(&self) -> impl Iterator<Item = JobId> + '_ {
        self.running.iter()
    }

    fn by_admission(&self, jobs: impl Iterator<Item = JobId>) -> impl Iterator<Item = JobId> + '_ {
        let mut found: Vec<_> = jobs.map(|job| (self.entry(job).admitted, job)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, job)| job)
    }

    /// Derives every invariant again from the states of the jobs, for debug builds and tests.
    /// O(jobs in the system).
    ///
    /// # Panics
    /// If the ledger contradicts itself, or a promise was missed by `now` without being broken.
    pub fn sanity_check(&self, now: Time) {
        let mut free: Vec<Resources> = self.machine.hosts().iter().map(|host| host.capacity).collect();
        // Jobs hold these resources, although the machine does not have them.
        free[0] = free[0].plus(&self.missing);
        let (mut waiting, mut running, mut suspended, mut released_jobs) = (0, vec![], vec![], 0);
        for (job, entry) in (0..).map(JobId).zip(&self.jobs) {
            let Some(entry) = entry else { continue };
            let number = entry.request.number;
            entry.check_opportunistic(number);
            match &entry.state {
                State::Waiting => {
                    waiting += 1;
                    assert!(!entry.has_missed_promise(now), "job {number} waits past its promise at {now}");
                }
                State::Running { start, placement, released, .. } => {
                    running.push(job);
                    released_jobs += usize::from(*released);
                    assert!(*start >= entry.request.submit, "job {number} started early");
                    if !released {
                        hold(&mut free, placement, self.by_host(Part::All));
                    }
                }
                State::Suspended { placement, holds, .. } => {
                    suspended.push(job);
                    assert_eq!(entry.working(), Procs::ZERO, "job {number} is suspended and works");
                    hold(&mut free, placement, self.by_host(holds.part()));
                }
            }
        }
        if self.matrix.is_some() {
            // A mean over the slots.
            free[0] = free[0].with_cpus(self.free.on(HostId(0)).cpus_count());
        }
        assert_eq!(free, self.free.each(), "the free counts follow from the placements at {now}");
        assert_eq!(FreeHosts::new(&self.machine, free).total(), self.free.total(), "and so do their sums");
        self.check_names();
        self.check_devices();
        self.check_slots();
        self.check_usage(now);
        assert_eq!(
            (waiting, released_jobs),
            (self.waiting, self.released),
            "the counts of waiting and released jobs follow from the states"
        );
        for (found, set) in [(running, &self.running), (suspended, &self.suspended)] {
            let kept: BTreeSet<_> = set.iter().collect();
            assert_eq!(
                (found.len(), kept),
                (set.len(), found.into_iter().collect()),
                "the sets follow from the states"
            );
        }
    }
}

fn hold(free: &mut [Resources], placement: &Placement, part: Part) {
    for share in placement.shares() {
        let host = &mut free[share.host.index()];
        *host = host.minus(&part.select(share.amount)).expect("no host is over-committed");
    }
}
