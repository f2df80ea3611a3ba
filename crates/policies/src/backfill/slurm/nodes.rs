//! The plan of a cycle on nodes: reservations hold whole nodes.

use fixedbitset::FixedBitSet;
use miserly_core::{Context, Event, HostId, JobId, Ledger, Machine, Placement, Span, Time, Violation};

use super::SlurmRules;
use super::ends::{Ends, demand_of};
use super::plan::{CyclePlan, Planned};
use super::round_up;
use super::select::select_hosts;
use crate::shared::Waiting;

/// The nodes of a cluster over time, as `sched/backfill` and `select/cons_tres` plan them.
///
/// | part | rule |
/// |---|---|
/// | hosts of a job | [`select_hosts`]: the best fit among runs of consecutive hosts, of the group that its form has |
/// | reservation | whole hosts, though other jobs may run there now, from its start to its limit, both rounded down to the resolution |
/// | hosts for a job | those without a reservation from a start until the limit, and not [closed](Machine::closed_hosts) in that time |
/// | start of a job | on these hosts, when enough running jobs have ended. Those that end soon one after the other are tried together: within 30 s of the first half minute, then within twice that time, and so on |
/// | next try | at the end of the next stretch of time between reservations, if the start is not before it, or the hosts are reserved or closed then |
///
/// With n jobs on h hosts and r reservations, the plan of a job is O(r (n + h log n)) at most.
#[derive(Debug)]
pub struct NodePlan {
    /// The machine and its jobs in this cycle.
    ends: Ends,
    /// The time of this cycle between changes of reservations.
    stretches: Vec<Stretch>,
}

/// A stretch of time without a change of the reservations.
#[derive(Clone, Debug)]
struct Stretch {
    from: Time,
    to: Time,
    /// The hosts without a reservation.
    open: FixedBitSet,
}

impl NodePlan {
    /// Returns the hosts that are open for a time, without a reservation that overlaps it. `next` is the end of the first stretch of
    /// it, unless that is the last one.
    fn open(&self, machine: &Machine, from: Time, to: Time) -> (FixedBitSet, Option<Time>) {
        let first = self.stretches.partition_point(|stretch| stretch.to <= from);
        let mut during = self.stretches[first..].iter().take_while(|stretch| stretch.from <= to);
        let mut open = all(machine.hosts().len());
        machine.closed_within(from, to).for_each(|host| open.set(host.index(), false));
        while !open.is_clear()
            && let Some(stretch) = during.next()
        {
            open.intersect_with(&stretch.open);
        }
        let next = self.stretches.get(first).filter(|_| first + 1 < self.stretches.len());
        (open, next.map(|stretch| stretch.to))
    }

    /// Returns whether a host of a placement is reserved during a time, in units of the plan.
    fn is_reserved(&self, from: Time, to: Time, placement: &Placement) -> bool {
        let first = self.stretches.partition_point(|stretch| stretch.to <= from);
        let mut during = self.stretches[first..].iter().take_while(|stretch| stretch.from < to);
        during.any(|stretch| placement.shares().iter().any(|share| !stretch.open[share.host.index()]))
    }

    /// Reserves the hosts of a placement.
    fn reserve(&mut self, from: Time, to: Time, placement: &Placement) {
        self.split(from);
        self.split(to);
        for stretch in self.stretches.iter_mut().filter(|stretch| stretch.from >= from && stretch.to <= to) {
            placement.shares().iter().for_each(|share| stretch.open.set(share.host.index(), false));
        }
    }

    /// Splits the stretch over an instant.
    fn split(&mut self, at: Time) {
        let Some(place) = self.stretches.iter().position(|stretch| stretch.from < at && at < stretch.to)
        else {
            return;
        };
        let first = Stretch { to: at, ..self.stretches[place].clone() };
        self.stretches[place].from = at;
        self.stretches.insert(place, first);
    }
}

/// Returns whether a host of a placement is closed during a time.
fn is_closed(machine: &Machine, from: Time, to: Time, placement: &Placement) -> bool {
    machine.closed_within(from, to).any(|host| placement.shares().iter().any(|share| share.host == host))
}

/// Returns a set with this number of hosts.
fn all(hosts: usize) -> FixedBitSet {
    let mut all = FixedBitSet::with_capacity(hosts);
    all.insert_range(..);
    all
}

/// Returns the last multiple of a unit that is not after an instant.
fn round_down(at: Time, unit: Span) -> Time {
    let up = round_up(at, unit);
    if up == at { at } else { up - unit }
}

impl CyclePlan for NodePlan {
    type Place = Placement;

    // Reservations are rounded to the clock.
    const VARIES_WITH_TIME: bool = true;

    fn idle(_machine: &Machine) -> NodePlan {
        NodePlan { ends: Ends::default(), stretches: vec![] }
    }

    fn rebuild(_now: Time, _ledger: &Ledger) -> NodePlan {
        NodePlan { ends: Ends::default(), stretches: vec![] }
    }

    fn event(&mut self, _now: Time, _event: &Event, _ledger: &Ledger) {}

    fn begin_pass(&mut self, _now: Time, _ledger: &Ledger) {}

    fn end_pass(&mut self, _now: Time) {}

    fn is_unsteady(&self) -> bool {
        true
    }

    fn all_open(&self, ledger: &Ledger) -> Vec<bool> {
        vec![true; ledger.machine().hosts().len()]
    }

    fn close(&self, now: Time, ledger: &Ledger, job: &Waiting, open: &mut [bool]) -> bool {
        let group = ledger.machine().demand(ledger.request(job.job)).group();
        // A job that waits for closed hosts does not hold up others.
        let mut closed = ledger.machine().closed_within(now, now + job.span);
        if closed.any(|host| ledger.machine().permits(group, host)) {
            return true;
        }
        for (host, open) in (0..).map(HostId).zip(&mut *open) {
            *open &= !ledger.machine().permits(group, host);
        }
        open.contains(&true)
    }

    fn place_now(&self, context: &Context<'_>, job: &Waiting, open: &[bool]) -> Option<Placement> {
        let ledger = context.ledger();
        let (machine, free) = (ledger.machine(), ledger.free_hosts().each());
        let demand = demand_of(ledger, job.job);
        let now = context.now();
        let mut closed = machine.closed_within(now, now + job.span).peekable();
        if closed.peek().is_none() {
            return select_hosts(machine, free, open, &demand);
        }
        let mut open = open.to_vec();
        closed.for_each(|host| open[host.index()] = false);
        select_hosts(machine, free, &open, &demand)
    }

    fn begin_cycle(&mut self, now: Time, ledger: &Ledger, rules: &SlurmRules) {
        self.ends = Ends::new(now, ledger);
        self.stretches =
            vec![Stretch { from: now, to: now + rules.bf_window, open: all(ledger.machine().hosts().len()) }];
        ledger.machine().closed_hosts().iter().for_each(|closed| self.split(closed.to));
    }

    fn plan(&mut self, context: &Context<'_>, job: &Waiting, rules: &SlurmRules) -> Planned<Placement> {
        let (now, machine) = (context.now(), context.ledger().machine());
        let demand = demand_of(context.ledger(), job.job);
        let mut from = now;
        // Many stretches have the same open hosts.
        let (mut searched, mut first): (Option<FixedBitSet>, Option<(Time, Placement)>) = (None, None);
        loop {
            let (open, next) = self.open(machine, from, from + job.span);
            if searched.as_ref() != Some(&open) {
                first = if open.is_clear() {
                    None
                } else {
                    let hosts: Vec<bool> = (0..open.len()).map(|host| open.contains(host)).collect();
                    self.ends.first_start(now, machine, &hosts, &demand)
                };
                searched = Some(open);
            }
            // The other hosts may be free in the next stretch.
            let found = first.as_ref().map(|(at, place)| (from.max(*at), place));
            let Some((at, place)) = found.filter(|(at, _)| next.is_none_or(|next| *at <= next)) else {
                let Some(next) = next else { return Planned::Beyond };
                from = next;
                continue;
            };
            if at <= now {
                return Planned::Now(place.clone());
            }
            if at > now + rules.bf_window {
                return Planned::Beyond;
            }
            let [begin, end] = [at, at + job.span].map(|at| round_down(at, rules.bf_resolution));
            let is_taken =
                self.is_reserved(begin, end, place) || is_closed(machine, at, at + job.span, place);
            if is_taken && at > from {
                from = at;
                continue;
            }
            self.reserve(begin.max(now), end, place);
            return Planned::Later(at, place.clone());
        }
    }

    fn open_now(&self, now: Time, ledger: &Ledger, job: &Waiting) -> Vec<bool> {
        let (open, _) = self.open(ledger.machine(), now, now + job.span);
        (0..open.len()).map(|host| open.contains(host)).collect()
    }

    fn jobs_left(&mut self, now: Time, ledger: &Ledger) {
        if !self.stretches.is_empty() {
            self.ends = Ends::new(now, ledger);
        }
    }

    fn end_cycle(&mut self) {
        *self = NodePlan { ends: Ends::default(), stretches: vec![] };
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
