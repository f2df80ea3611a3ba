//! The plan of a cycle on nodes: reservations hold whole nodes.

use fixedbitset::FixedBitSet;
use miserly_core::{Context, Event, JobId, Ledger, Machine, Placement, Resources, Span, Time, Violation};

use super::SlurmRules;
use super::ends::{Ends, Search, demand_of};
use super::plan::{CyclePlan, Planned};
use super::round_up;
use super::select::{Fit, Sizes};
use super::sets::{HostSets, Wanted};
use super::stretches::{Stretches, Try};
use super::suspension::Room;
use crate::shared::Waiting;

/// The nodes of a cluster over time, as `sched/backfill` and `select/cons_tres` plan them.
///
/// | part | rule |
/// |---|---|
/// | hosts of a job | [`select_hosts`](super::select_hosts): the best fit among runs of consecutive hosts, of the group that its form has |
/// | reservation | whole hosts, though other jobs may run there now, from its start to its limit, both rounded down to the resolution |
/// | hosts for a job | those without a reservation from a start until the limit, and not [closed](Machine::closed_hosts) in that time |
/// | start of a job | on these hosts, when enough running jobs have ended. Those that end soon one after the other are tried together: within 30 s of the first half minute, then within twice that time, and so on |
/// | next try | at the end of the next stretch of time between reservations, if the start is not before it, or the hosts are reserved or closed then |
///
/// Hosts are bit sets. With n running jobs on h hosts and r reservations, a try of a job is O(r h + n) in steps of 64 hosts, and O(h)
/// more where jobs share hosts. Tries that cannot succeed are skipped: those at which part of the time has too few open hosts
/// together, or before so many resources are free on all hosts.
#[derive(Debug, Default)]
pub struct NodePlan {
    sets: HostSets,
    /// The machine and its jobs in this cycle.
    ends: Ends,
    /// The time of this cycle between changes of reservations. There are none outside of a cycle.
    stretches: Stretches,
    /// The hosts on which preempted jobs end: no job starts there.
    completing: FixedBitSet,
}

/// Returns whether a host of a set is closed during a time.
fn is_closed(machine: &Machine, from: Time, to: Time, hosts: &FixedBitSet) -> bool {
    machine.closed_within(from, to).any(|host| hosts.contains(host.index()))
}

/// Returns the last multiple of a unit that is not after an instant.
fn round_down(at: Time, unit: Span) -> Time {
    let up = round_up(at, unit);
    if up == at { at } else { up - unit }
}

impl NodePlan {
    /// Returns the hosts of a placement.
    fn hosts_of(&self, placement: &Placement) -> FixedBitSet {
        let mut hosts = FixedBitSet::with_capacity(self.sets.number());
        hosts.extend(placement.shares().iter().map(|share| share.host.index()));
        hosts
    }
}

impl CyclePlan for NodePlan {
    type Place = Placement;

    // Reservations are rounded to the clock.
    const VARIES_WITH_TIME: bool = true;

    fn idle(machine: &Machine) -> NodePlan {
        NodePlan { sets: HostSets::new(machine), ..NodePlan::default() }
    }

    fn rebuild(_now: Time, ledger: &Ledger) -> NodePlan {
        NodePlan::idle(ledger.machine())
    }

    fn event(&mut self, _now: Time, _event: &Event, _ledger: &Ledger) {}

    fn begin_pass(&mut self, _now: Time, _ledger: &Ledger) {}

    fn end_pass(&mut self, _now: Time) {}

    fn is_unsteady(&self) -> bool {
        true
    }

    fn all_open(&self, _ledger: &Ledger) -> FixedBitSet {
        self.sets.all()
    }

    fn close(&self, now: Time, ledger: &Ledger, job: &Waiting, open: &mut FixedBitSet) -> bool {
        let group = ledger.machine().demand(ledger.request(job.job)).group();
        // A job that waits for closed hosts does not hold up others.
        let mut closed = ledger.machine().closed_within(now, now + job.span);
        if closed.any(|host| ledger.machine().permits(group, host)) {
            return true;
        }
        self.sets.remove(group, open);
        !open.is_clear()
    }

    fn place_now(&self, context: &Context<'_>, job: &Waiting, open: &FixedBitSet) -> Option<Placement> {
        let free = context.ledger().free_hosts();
        if context.ledger().suspended_count() > 0 {
            self.place_in(context, job, open, &Room::new(context.ledger(), |_| false).free())
        } else if demand_of(context.ledger(), job.job).amount().fits_in(&free.total()) {
            self.place_in(context, job, open, free.each())
        } else {
            None
        }
    }

    fn place_in(
        &self,
        context: &Context<'_>,
        job: &Waiting,
        open: &FixedBitSet,
        free: &[Resources],
    ) -> Option<Placement> {
        let (now, machine) = (context.now(), context.ledger().machine());
        let demand = demand_of(context.ledger(), job.job);
        let mut open = open.clone();
        self.sets.keep(demand.group(), &mut open);
        machine.closed_within(now, now + job.span).for_each(|host| open.set(host.index(), false));
        let fit = Fit::new(machine, &demand);
        fit.place(&open, &Sizes::ByHost(&|host| fit.size(&free[host], host)))
    }

    fn begin_cycle(&mut self, now: Time, ledger: &Ledger, rules: &SlurmRules) {
        self.ends.read(now, ledger, &[]);
        self.stretches = Stretches::new(now, now + rules.bf_window, self.sets.all());
        ledger.machine().closed_hosts().iter().for_each(|closed| self.stretches.split(closed.to));
    }

    fn plan(&mut self, context: &Context<'_>, job: &Waiting, rules: &SlurmRules) -> Planned<Placement> {
        let (now, machine) = (context.now(), context.ledger().machine());
        let demand = demand_of(context.ledger(), job.job);
        let Some(least) = self.ends.least_start(now, &demand.amount()) else { return Planned::Beyond };
        let wanted = Wanted::new(Fit::new(machine, &demand), &self.sets);
        let Some(hosts) = wanted.least_hosts() else { return Planned::Beyond };
        let mut from = now;
        // Many stretches have the same open hosts.
        let mut searched: Option<Search> = None;
        loop {
            let next_try = self.stretches.next_try(from, job.span, (&wanted.usable, hosts), least);
            let Some((Try { from: at, next }, mut open)) = next_try else { return Planned::Beyond };
            from = at;
            machine.closed_within(from, from + job.span).for_each(|host| open.set(host.index(), false));
            let search = match searched.take().filter(|search| *search.open() == open) {
                Some(search) => searched.insert(search),
                None => searched.insert(self.ends.search(now, &wanted, open)),
            };
            // The other hosts may be free in the next stretch.
            let Some((first, place)) = self.ends.first_start(search, &wanted, next) else {
                let Some(next) = next else { return Planned::Beyond };
                from = next;
                continue;
            };
            let at = from.max(first);
            if at <= now {
                let place = place.clone();
                // The job waits for the jobs that end there.
                return if self.hosts_of(&place).is_disjoint(&self.completing) {
                    Planned::Now(place)
                } else {
                    self.reserve_now(now, job, &place, rules);
                    Planned::Later(now, place)
                };
            }
            if at > now + rules.bf_window {
                return Planned::Beyond;
            }
            let [begin, end] = [at, at + job.span].map(|at| round_down(at, rules.bf_resolution));
            let taken = self.hosts_of(place);
            let is_taken = self.stretches.is_reserved(begin, end, &taken)
                || is_closed(machine, at, at + job.span, &taken);
            if is_taken && at > from {
                from = at;
                continue;
            }
            self.stretches.reserve(begin.max(now), end, &taken);
            return Planned::Later(at, place.clone());
        }
    }

    fn open_now(&self, now: Time, ledger: &Ledger, job: &Waiting) -> FixedBitSet {
        let until = now + job.span;
        let mut open = self.stretches.open(now, until, self.sets.all());
        ledger.machine().closed_within(now, until).for_each(|host| open.set(host.index(), false));
        open
    }

    fn leave_out(&mut self, now: Time, ledger: &Ledger, jobs: &[JobId]) -> bool {
        self.ends.read(now, ledger, jobs);
        true
    }

    fn reserve_now(&mut self, now: Time, job: &Waiting, place: &Placement, rules: &SlurmRules) {
        let until = round_down(now + job.span, rules.bf_resolution);
        self.stretches.reserve(now, until, &self.hosts_of(place));
    }

    fn set_completing(&mut self, hosts: &FixedBitSet) {
        self.completing.clone_from(hosts);
    }

    fn jobs_left(&mut self, now: Time, ledger: &Ledger) {
        if !self.stretches.is_empty() {
            self.ends.read(now, ledger, &[]);
        }
    }

    fn end_cycle(&mut self) {
        self.stretches = Stretches::default();
    }

    fn job_started(&mut self, now: Time, job: &Waiting, ledger: &Ledger) {
        if let Some(placement) = ledger.entry(job.job).placement().filter(|_| !self.stretches.is_empty()) {
            self.ends.start(now + job.span, placement);
        }
    }

    fn never_fits(&self, _now: Time, _job: &Waiting, _ledger: &Ledger) -> bool {
        false
    }

    fn placement(_ledger: &Ledger, _job: JobId, place: Placement) -> Placement {
        place
    }

    fn record(context: &mut Context<'_>, job: JobId, at: Time, place: &Placement) -> Result<(), Violation> {
        context.plan_on(job, at, place.clone())
    }
}
