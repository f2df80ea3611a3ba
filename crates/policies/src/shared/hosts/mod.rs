//! The availability of hosts: the free resources of each, from now on.

mod timeline;

mod lines;

mod search;

mod several;

mod freed_search;

mod pool;

mod devices;

mod freed;

mod lasting;

mod held;

mod what_if;

use std::collections::BTreeSet;
use std::sync::Arc;

use miserly_core::{
    Entry, Expected, FreeHosts, HostId, JobId, Ledger, Machine, Placement, Procs, Resources, Sharing, Span,
    Spread, State, Time,
};

pub use self::freed::FreedHosts;
pub use self::what_if::WhatIf;

use self::held::Pending;
use self::lasting::Lasting;
use self::lines::Lines;
use self::pool::Pool;
use self::several::LastSearch;
use super::Profile;

/// The free resources of a machine's hosts over time, beside running jobs and reservations.
///
/// A reservation names its hosts, so later jobs cannot invalidate it. Counts of the whole machine
/// would not show whether the free processors and the free memory are on one host.
///
/// Each host has a timeline. An index over all breakpoints leads a search from one instant at which
/// some host changes to the next. With n breakpoints of a host and m of all hosts, a change takes
/// O(n + log m). Where jobs may span hosts, hosts share timelines, and a change takes O(log hosts) for each host.
///
/// A pool is a machine of one host whose capacity changes over time. Its calendar is known for
/// ever, so it is not part of the timeline.
#[derive(Clone, Debug)]
pub struct HostPlan {
    machine: Machine,
    /// The hosts without any job or loss of capacity.
    idle: Arc<FreeHosts>,
    /// Times before this one are past and no longer represented.
    now: Time,
    lines: Lines,
    /// What stays free for ever, where jobs may span hosts.
    lasting: Option<Lasting>,
    /// What is free now, where each job runs on one of several hosts.
    present: Option<FreeHosts>,
    /// The only reservation of this pass, where jobs may span hosts and no other one is in the timelines.
    ///
    /// Between passes it is that of the last pass, for the next one often holds the same.
    pending: Option<Pending>,
    /// The number of reservations that are held for this pass.
    held: usize,
    /// The last search over several hosts, as long as what it read is the same.
    last_search: Option<LastSearch>,
    /// The free processors of all hosts together, for a first check of a job that may span hosts.
    together: Option<Profile>,
    /// The resources that each job holds over time, as entered in the timelines.
    ///
    /// Indexed by job. Most entries are empty.
    jobs: Vec<Vec<Stretch>>,
    /// The planned resumptions of suspended jobs.
    resumptions: BTreeSet<(Time, JobId)>,
    /// Jobs whose next end or resumption is overdue: they hold their resources until the next tick,
    /// for any value of `now`.
    late: BTreeSet<JobId>,
}

/// The resources that a job holds for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stretch {
    from: Time,
    to: Time,
    placement: Placement,
    part: Part,
}

/// The part of a placement that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    AllButCpus,
}

impl Part {
    fn part_of(self, amount: &Resources) -> Resources {
        match self {
            Part::Whole => *amount,
            Part::AllButCpus => amount.without_cpus(),
        }
    }
}

impl HostPlan {
    /// Returns the plan of an idle machine.
    pub fn new(machine: &Machine) -> HostPlan {
        let spans = machine.spread() == Spread::Any;
        HostPlan {
            machine: machine.clone(),
            idle: Arc::new(FreeHosts::idle(machine)),
            now: Time::from_ticks(i64::MIN),
            lines: Lines::new(machine),
            lasting: spans.then(|| Lasting::new(machine)),
            present: (!spans && machine.hosts().len() > 1).then(|| FreeHosts::idle(machine)),
            pending: None,
            held: 0,
            last_search: None,
            together: spans.then(|| Profile::new(small(machine.capacity().cpus_count()))),
            jobs: Vec::new(),
            resumptions: BTreeSet::new(),
            late: BTreeSet::new(),
        }
    }

    /// Returns the plan with the ledger's running and suspended jobs, as of `now`.
    pub fn rebuild(now: Time, ledger: &Ledger) -> HostPlan {
        let mut plan = HostPlan { now, ..HostPlan::new(ledger.machine()) };
        for job in ledger.running().chain(ledger.suspended()) {
            plan.follow(now, job, ledger);
        }
        plan
    }

    /// Returns the machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Forgets the time before `now`. Adds to `freed` each host with a change since the last call.
    pub fn advance(&mut self, now: Time, freed: &mut FreedHosts) {
        self.now = now;
        while let Some(&(until, job)) = self.resumptions.first().filter(|(until, _)| *until <= now) {
            self.resumptions.remove(&(until, job));
            self.placement_of(job).into_iter().for_each(|placement| freed.add(placement, Time::MAX));
            self.forget(job);
            self.late.insert(job);
        }
        for host in self.lines.advance(now) {
            freed.add_host(host, Time::MAX);
            self.host_changed(host);
        }
        if let Some(together) = &mut self.together {
            together.advance(now);
        }
    }

    /// Returns whether a job still holds the machine, or processors, past its planned end.
    pub fn any_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// Replaces the entry of a job by its present state in the ledger.
    pub fn follow(&mut self, now: Time, job: JobId, ledger: &Ledger) {
        self.forget(job);
        let (stretches, late) = stretches(now, ledger.entry(job));
        if let (State::Suspended { until, .. }, false) = (&ledger.entry(job).state, late) {
            self.resumptions.insert((*until, job));
        }
        if late {
            self.late.insert(job);
        } else if !stretches.is_empty() {
            self.enter(job, stretches);
        }
    }

    /// Removes a job that has left the machine.
    pub fn forget(&mut self, job: JobId) {
        self.late.remove(&job);
        let stretches = self.jobs.get_mut(job.index()).map(std::mem::take).unwrap_or_default();
        if let [Stretch { part: Part::AllButCpus, to, .. }, ..] = stretches[..] {
            self.resumptions.remove(&(to, job));
        }
        self.change_stretches(&stretches, true);
    }

    /// Returns the planned time at which the job leaves the machine, if it is in the plan.
    pub fn until(&self, job: JobId) -> Option<Time> {
        self.jobs.get(job.index())?.last().map(|stretch| stretch.to)
    }

    /// Returns the placement of the job, if it is in the plan.
    pub fn placement_of(&self, job: JobId) -> Option<&Placement> {
        Some(&self.jobs.get(job.index())?.last()?.placement)
    }

    fn enter(&mut self, job: JobId, stretches: Vec<Stretch>) {
        self.change_stretches(&stretches, false);
        if self.jobs.len() <= job.index() {
            self.jobs.resize_with(job.index() + 1, Vec::new);
        }
        self.jobs[job.index()] = stretches;
    }

    /// Holds the resources of overdue jobs until the next tick, for a planning pass at `now`.
    ///
    /// [`drop_late`](HostPlan::drop_late) undoes this.
    pub fn hold_late(&mut self, now: Time, ledger: &Ledger) {
        for job in self.late.clone() {
            let (stretches, _) = stretches_from(now, now + Span::TICK, ledger.entry(job));
            self.enter(job, stretches);
        }
    }

    /// Removes the reservations made by [`hold_late`](HostPlan::hold_late).
    pub fn drop_late(&mut self) {
        for job in self.late.clone() {
            let stretches = self.jobs.get_mut(job.index()).map(std::mem::take).unwrap_or_default();
            self.change_stretches(&stretches, true);
        }
    }

    /// Returns the resources that overdue jobs hold on a host.
    pub fn late_on(&self, host: HostId, ledger: &Ledger) -> Resources {
        let placements = self.late.iter().filter_map(|job| ledger.entry(*job).placement());
        let shares = placements.flat_map(Placement::shares).filter(|share| share.host == host);
        shares.fold(Resources::NONE, |sum, share| sum.plus(&share.amount))
    }

    /// Returns the free resources of the host at that time.
    pub fn free_at(&self, host: HostId, time: Time) -> Resources {
        let free = self.lines.on(host).free_at(time);
        self.pool().map_or(free, |pool| free.less(&pool.lacking(time)))
    }

    /// Reserves a placement from `at` on.
    pub fn take(&mut self, at: Time, span: Span, placement: &Placement) {
        self.add(at, at + span, placement, Part::Whole, false);
    }

    /// Releases a reservation.
    pub fn give(&mut self, at: Time, span: Span, placement: &Placement) {
        self.add(at, at + span, placement, Part::Whole, true);
    }

    /// Returns a copy of one host's timeline for hypothetical changes.
    pub fn trial(&self, host: HostId) -> WhatIf<'_> {
        WhatIf::new(self, host)
    }

    fn change_stretches(&mut self, stretches: &[Stretch], give: bool) {
        for stretch in stretches {
            self.add(stretch.from, stretch.to, &stretch.placement, stretch.part, give);
        }
    }

    fn add(&mut self, from: Time, to: Time, placement: &Placement, part: Part, give: bool) {
        if to <= self.now {
            // The timelines have no past. Here it would change what is free now.
            return;
        }
        if let (Some(together), Part::Whole) = (&mut self.together, part) {
            let (from, procs) = (from.max(self.now), small(placement.total().cpus_count()));
            if give { together.give(from, to, procs) } else { together.take(from, to, procs) }
        }
        let from = self.since(from);
        if self.last_search.as_ref().is_some_and(|last| last.reads(from, to)) {
            self.last_search = None;
        }
        self.lines.change(placement.shares(), part, from, to, give);
        self.lines.change_devices(placement.devices(), from, to, give);
        self.hosts_changed(placement);
        if self.pending.is_some() && !self.only_rises() {
            self.enter_pending();
        }
    }

    fn hosts_changed(&mut self, placement: &Placement) {
        placement.shares().iter().for_each(|share| self.host_changed(share.host));
    }

    /// Keeps what is free now, or what stays free for ever, on a host.
    fn host_changed(&mut self, host: HostId) {
        let line = self.lines.on(host);
        if let Some(present) = &mut self.present {
            let free = line.free_now();
            if present.on(host) != free {
                present.set(&self.machine, host, free);
            }
        }
        let Some(lasting) = &mut self.lasting else { return };
        let mut free = line.least();
        if let Some((pending, amount)) =
            self.pending.as_ref().and_then(|pending| Some((pending, pending.amount(host)?)))
        {
            free = free.least(&line.free_at(pending.at).less(amount));
        }
        lasting.set_free(&self.machine, host, free);
    }

    /// Returns `from`, or the start of time for a change that holds already.
    fn since(&self, from: Time) -> Time {
        if from <= self.now { Time::from_ticks(i64::MIN) } else { from }
    }

    /// Returns whether the machine is a pool, whose free resources also depend on its calendar.
    pub fn is_pool(&self) -> bool {
        self.machine.calendar().is_some()
    }

    /// Returns the machine as a pool, if it is one.
    fn pool(&self) -> Option<Pool<'_>> {
        let calendar = self.machine.calendar()?;
        Some(Pool { line: self.lines.on(HostId(0)), calendar, capacity: self.machine.capacity() })
    }

    /// Returns the next change of a pool's capacity.
    pub fn next_change(&self, now: Time) -> Option<Time> {
        self.machine.calendar()?.next(now).map(|(at, _)| at)
    }

    /// Returns the resources that a job needs free on a host. Returns `None` if the host is too
    /// small.
    fn need(&self, host: HostId, demand: &Resources) -> Option<Resources> {
        let capacity = self.machine.host(host).capacity;
        let need = match self.machine.sharing() {
            Sharing::Shared => *demand,
            Sharing::Whole => capacity,
        };
        demand.fits_in(&capacity).then_some(need)
    }
}

/// Converts a count to `u32`. The registry admits no machine, and the driver no job, beyond that
/// range.
fn small(procs: Procs) -> u32 {
    u32::try_from(procs).unwrap_or(u32::MAX)
}

/// Returns the resources that a job holds from now on, and whether the job is overdue.
fn stretches(now: Time, entry: &Entry) -> (Vec<Stretch>, bool) {
    stretches_from(now, Time::from_ticks(i64::MIN), entry)
}

/// Works like [`stretches`], but moves changes planned before `least` to `least`.
fn stretches_from(now: Time, least: Time, entry: &Entry) -> (Vec<Stretch>, bool) {
    let whole = |placement: &Placement, from, to| Stretch {
        from,
        to,
        placement: placement.clone(),
        part: Part::Whole,
    };
    match &entry.state {
        State::Waiting => (vec![], false),
        State::Running { expected, quantum, placement, .. } => {
            let end = match (quantum, expected) {
                (Some(until), _) => *until,
                (None, Expected::At(end)) => *end,
                (None, Expected::Overdue { .. }) => now,
            };
            let late = end <= now && (quantum.is_some() || matches!(expected, Expected::Overdue { .. }));
            (vec![whole(placement, now, end.max(least))], late)
        }
        State::Suspended { until, placement, .. } => {
            let resumed = (*until).max(least);
            let end = resumed + entry.left(now, placement.total().cpus_count().min(entry.request.procs()));
            let memory = Stretch { part: Part::AllButCpus, ..whole(placement, now, resumed) };
            (vec![memory, whole(placement, resumed, end)], *until <= now)
        }
    }
}
