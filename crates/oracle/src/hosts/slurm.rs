//! The scheduling of Slurm on nodes that jobs may span: a main loop, and cycles that reserve whole nodes.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{Demand, HostId, Kind, Resources, Span, Time};

use super::fit::{Part, held, times};
use super::preempted;
use super::world::{Running, World};
use crate::order::arrival;
use crate::{NaiveCycles, NaiveLimits, NaiveOrder};

/// The first half minute of a search, and the unit of the clock at which it begins.
const HALF_MINUTE: i128 = 30_000_000;

/// Runs the main loop, and the cycle of this instant unless it has been run. Returns the instant of the next cycle, if jobs wait.
pub(super) fn pass(
    world: &mut World<'_>,
    order: NaiveOrder,
    cycles: NaiveCycles,
    ended: bool,
    last: &mut Option<Time>,
) -> Option<Time> {
    let have_left = preempted::settle(world, cycles);
    if std::mem::take(&mut world.submitted) && world.next_loop.is_none() {
        world.next_loop = Some(world.last_loop.map_or(world.now, |last| world.now.max(last + cycles.delay)));
    }
    let is_due = world.next_loop.is_some_and(|at| at <= world.now);
    if is_due {
        (world.last_loop, world.next_loop) = (Some(world.now), None);
    }
    if is_due || ended || have_left || cycles.delay == Span::ZERO {
        main_loop(world, order, cycles);
    }
    let cycle = if world.waiting.is_empty() {
        None
    } else {
        if cycles.is_due(world.now, last) {
            Cycle::new(world, cycles).run(world, order);
        }
        Some(cycles.after(world.now))
    };
    let leave = world.holding().filter_map(|running| Some(running.leaves?.1));
    let again = world.again.iter().map(|(at, _)| *at);
    cycle.into_iter().chain(leave).chain(again).chain(world.next_loop).min()
}

/// Starts jobs in order. The hosts that a job could have which does not fit are closed for all jobs behind it.
///
/// Those that would exceed a limit are passed.
fn main_loop(world: &mut World<'_>, order: NaiveOrder, cycles: NaiveCycles) {
    let mut open: BTreeSet<usize> = (0..world.machine.hosts().len()).collect();
    open.retain(|host| !preempted::completing(world).contains(host));
    for job in preempted::queue(world, order, cycles) {
        let (too_many, too_wide) = exceeded(world, cycles.limits, job);
        if too_many || too_wide {
            continue;
        }
        let demand = world.demand(job);
        match choose(world, &free(world), &open, &demand) {
            Some(parts) => world.start(job, parts),
            None if preempted::start_over(world, job, &open, cycles) => {}
            None => {
                preempted::make_room(world, job, &open, cycles);
                open.retain(|host| !preempted::completing(world).contains(host));
                open.retain(|host| !permits(world, &demand, *host));
            }
        }
        if open.is_empty() {
            return;
        }
    }
}

pub(super) fn exceeded(world: &World<'_>, limits: NaiveLimits, job: usize) -> (bool, bool) {
    limits.exceeded(world.request(job), world.running.iter().map(|running| world.request(running.job)))
}

pub(super) fn permits(world: &World<'_>, demand: &Demand, host: usize) -> bool {
    world.machine.permits(demand.group(), HostId(u32::try_from(host).unwrap_or(u32::MAX)))
}

/// Returns what the jobs on the machine leave of each host.
fn free(world: &World<'_>) -> Vec<Resources> {
    free_of(world, |_| false, |_| false)
}

/// Returns what the jobs on the machine leave of each host but for the processors of some jobs, and without other jobs.
///
/// Jobs without their processors count as far as there are so many.
pub(super) fn free_of(
    world: &World<'_>,
    lends: impl Fn(usize) -> bool,
    is_left_out: impl Fn(usize) -> bool,
) -> Vec<Resources> {
    let mut free: Vec<Resources> = world.machine.hosts().iter().map(|host| host.capacity).collect();
    let (paused, working): (Vec<&Running>, Vec<&Running>) = world
        .running
        .iter()
        .filter(|running| !running.gone && !is_left_out(running.job))
        .partition(|running| running.paused.is_some());
    for running in working.into_iter().chain(paused) {
        for part in &running.parts {
            let room = free[part.host];
            let cpus = if lends(running.job) { 0 } else { part.amount.get(Kind::Cpus) };
            let cpus = if running.paused.is_some() { cpus.min(room.get(Kind::Cpus)) } else { cpus };
            let amount = part.amount.with(Kind::Cpus, cpus);
            free[part.host] = room.minus(&amount).expect("there is room for each job");
        }
    }
    free
}

/// Chooses the hosts of a job: of those of the lowest weight, the best fit among runs of consecutive hosts, or else the largest run and
/// the best fit for the rest.
pub(super) fn choose(
    world: &World<'_>,
    free: &[Resources],
    open: &BTreeSet<usize>,
    demand: &Demand,
) -> Option<Vec<Part>> {
    let amount = |host: usize, parts: u64| {
        held(world.machine, host, &free[host], &times(demand, parts), demand.is_alone())
    };
    let most = if demand.is_apart() { 1 } else { demand.parts() };
    let room = |host: usize| {
        let usable =
            open.contains(&host) && permits(world, demand, host) && free[host].cpus_count().get() > 0;
        let fits = |parts: &u64| usable && amount(host, *parts).is_some();
        (1..=most).rev().find(fits).unwrap_or(0)
    };
    // The processors that the job could use there, however many it needs.
    let cpus = |host: usize| {
        let all = free[host].cpus_count().get();
        let each = demand.each();
        let enough =
            |procs: &u64| Kind::ALL.into_iter().all(|kind| each.get(kind) * procs <= free[host].get(kind));
        let one_each = !demand.is_apart() && demand.parts() == demand.amount().cpus_count().get();
        if one_each { (0..=all).rev().find(enough).expect("none always fit") } else { all }
    };
    let mut left = demand.parts();
    let weight = |host: usize| world.machine.weights().get(host).copied().unwrap_or(1);
    let mut hosts: Vec<usize> = (0..free.len()).filter(|host| room(*host) > 0).collect();
    let mut taken = vec![];
    while left > 0 {
        let lightest = hosts.iter().map(|host| weight(*host)).min()?;
        let all: Vec<usize> = hosts.iter().copied().filter(|host| weight(*host) == lightest).collect();
        let runs = all.chunk_by(|one, next| next - one == 1).map(|run| {
            let parts: u64 = run.iter().map(|host| room(*host)).sum();
            let cpus: u64 = run.iter().map(|host| cpus(*host)).sum();
            (run.to_vec(), parts, cpus)
        });
        let runs: Vec<(Vec<usize>, u64, u64)> = runs.collect();
        let enough =
            runs.iter().filter(|(_, parts, _)| *parts >= left).min_by_key(|(run, _, cpus)| (*cpus, run[0]));
        let largest = || runs.iter().max_by_key(|(run, _, cpus)| (*cpus, std::cmp::Reverse(run[0])));
        let (run, ..) = enough.or_else(largest)?.clone();
        let one = run.iter().filter(|host| room(**host) >= left);
        let one = one.min_by_key(|host| (cpus(**host), **host));
        for host in one.map_or(run.clone(), |one| vec![*one]) {
            let parts = room(host).min(left);
            if parts > 0 {
                taken.push(Part {
                    host,
                    amount: amount(host, parts).expect("there is room"),
                    devices: vec![],
                });
                left -= parts;
            }
        }
        hosts.retain(|host| !run.contains(host));
    }
    Some(taken)
}

/// A reservation of whole hosts.
struct Reserved {
    from: Time,
    until: Time,
    hosts: Vec<usize>,
}

/// A cycle of backfilling.
struct Cycle {
    cycles: NaiveCycles,
    end: Time,
    reserved: Vec<Reserved>,
    /// The instants at which reservations begin or end, within the window.
    marks: BTreeSet<Time>,
}

impl Cycle {
    fn new(world: &World<'_>, cycles: NaiveCycles) -> Cycle {
        Cycle { cycles, end: world.now + cycles.window, reserved: vec![], marks: BTreeSet::new() }
    }

    fn run(&mut self, world: &mut World<'_>, order: NaiveOrder) {
        let mut tried = 0;
        for job in preempted::queue(world, order, self.cycles) {
            let (too_many, too_wide) = exceeded(world, self.cycles.limits, job);
            if too_many {
                continue;
            }
            tried += 1;
            if tried > self.cycles.most {
                return;
            }
            if !too_wide {
                self.plan_or_make_room(world, job);
            }
        }
    }

    /// Plans a job. One that fits beside no running jobs on hosts without a reservation makes room there.
    fn plan_or_make_room(&mut self, world: &mut World<'_>, job: usize) {
        let (now, end) = (world.now, world.now + world.request(job).planned());
        let mut open: BTreeSet<usize> = (0..world.machine.hosts().len()).collect();
        for other in self.reserved.iter().filter(|other| other.from <= end && other.until > now) {
            open.retain(|host| !other.hosts.contains(host));
        }
        let fits = choose(world, &free(world), &open, &world.demand(job)).is_some();
        open.retain(|host| !preempted::completing(world).contains(host));
        if !fits && preempted::start_over(world, job, &open, self.cycles) {
            return;
        }
        let candidates = if fits { vec![] } else { preempted::candidates(world, job, self.cycles) };
        if candidates.is_empty() {
            return self.plan(world, job, &[], |world, parts| world.start(job, parts));
        }
        let cycles = self.cycles;
        self.plan(world, job, &candidates, |world, _| preempted::make_room(world, job, &open, cycles));
    }

    /// Starts a job in this way if it may start without some of the running jobs, reserves hosts for it, or leaves it out. One that may
    /// start, but without these jobs only, or on hosts where others end, has a reservation from now on.
    fn plan(
        &mut self,
        world: &mut World<'_>,
        job: usize,
        without: &[usize],
        start: impl FnOnce(&mut World<'_>, Vec<Part>),
    ) {
        let (now, span, demand) = (world.now, world.request(job).planned(), world.demand(job));
        let mut from = now;
        loop {
            // A reservation that begins as the job ends is in its way.
            let in_the_way = |other: &&Reserved| other.from <= from + span && other.until > from;
            let closed: BTreeSet<usize> =
                self.reserved.iter().filter(in_the_way).flat_map(|other| other.hosts.clone()).collect();
            let open = (0..world.machine.hosts().len()).filter(|host| !closed.contains(host)).collect();
            let next = self.marks.iter().copied().find(|mark| *mark > from);
            let found = first_start(world, &open, &demand, without).map(|(at, parts)| (at.max(from), parts));
            let Some((at, parts)) = found.filter(|(at, _)| next.is_none_or(|next| *at <= next)) else {
                let Some(next) = next else { return };
                from = next;
                continue;
            };
            let hosts: Vec<usize> = parts.iter().map(|part| part.host).collect();
            if at == now {
                let waits = hosts.iter().any(|host| preempted::completing(world).contains(host));
                if !waits {
                    start(world, parts);
                }
                if waits || !without.is_empty() {
                    self.reserve(now, now, self.rounded(now + span), hosts);
                }
                return;
            }
            if at > self.end {
                return;
            }
            let [begin, until] = [at, at + span].map(|at| self.rounded(at));
            let taken = |other: &Reserved| {
                other.from < until
                    && other.until > begin
                    && other.hosts.iter().any(|host| hosts.contains(host))
            };
            if at > from && self.reserved.iter().any(taken) {
                from = at;
                continue;
            }
            return self.reserve(now, begin.max(now), until, hosts);
        }
    }

    fn rounded(&self, at: Time) -> Time {
        Time::from_ticks(at.ticks() - at.ticks() % self.cycles.resolution.ticks())
    }

    fn reserve(&mut self, now: Time, from: Time, until: Time, hosts: Vec<usize>) {
        self.marks.extend([from, until].into_iter().filter(|at| now < *at && *at < self.end));
        let until = until.min(self.end);
        if from < until {
            self.reserved.push(Reserved { from, until, hosts });
        }
    }
}

fn is_paused(world: &World<'_>, job: usize) -> bool {
    world.running.iter().any(|running| running.job == job && running.paused.is_some())
}

/// Returns the first start on the open hosts that a search in steps over the ends of the running jobs finds.
fn first_start(
    world: &World<'_>,
    open: &BTreeSet<usize>,
    demand: &Demand,
    without: &[usize],
) -> Option<(Time, Vec<Part>)> {
    let mut free = free_of(world, |_| false, |job| without.contains(&job));
    if let Some(parts) = choose(world, &free, open, demand) {
        return Some((world.now, parts));
    }
    let on_machine = world.running.iter().filter(|running| !running.gone && !without.contains(&running.job));
    let mut running: Vec<&Running> = on_machine.collect();
    let end_of = |running: &Running| {
        let end = running.leaves.map_or(running.expected, |(_, at)| at.min(running.expected));
        end.max(world.now + Span::TICK)
    };
    // Ends at one instant are in the order of the submissions.
    running.sort_by_key(|running| (end_of(running), arrival(running.job, world.jobs)));
    // What a job without its processors leaves is what it takes beside the others.
    let mut beside = free_of(world, |_| false, |job| without.contains(&job) || is_paused(world, job));
    let leaves = |running: &Running| {
        let mut parts = running.parts.clone();
        for part in parts.iter_mut().filter(|_| running.paused.is_some()) {
            let cpus = part.amount.get(Kind::Cpus).min(beside[part.host].get(Kind::Cpus));
            let left = beside[part.host].get(Kind::Cpus) - cpus;
            beside[part.host] = beside[part.host].with(Kind::Cpus, left);
            part.amount = part.amount.with(Kind::Cpus, cpus);
        }
        (running.job, parts)
    };
    let left: BTreeMap<usize, Vec<Part>> = world.running.iter().map(leaves).collect();
    let running: Vec<(Time, &[Part])> =
        running.into_iter().map(|running| (end_of(running), &left[&running.job][..])).collect();
    let is_open = |parts: &[Part]| parts.iter().any(|part| open.contains(&part.host));
    let first = running.iter().find(|(_, parts)| is_open(parts))?.0;
    let begin = (i128::from(first.ticks()) / HALF_MINUTE + 1) * HALF_MINUTE;
    // The bounds are 30 s, 60 s, 120 s ... after the begin.
    let mut bound = HALF_MINUTE;
    for (nth, (end, parts)) in running.iter().enumerate() {
        if !is_open(parts) {
            continue;
        }
        for part in *parts {
            free[part.host] = free[part.host].plus(&part.amount);
        }
        let later = running[nth + 1..].iter().map(|(end, _)| i128::from(end.ticks()) - begin).next();
        let others = running[nth + 1..].iter().any(|(_, parts)| is_open(parts));
        // With no further job on these hosts, nothing more becomes free.
        if later.is_some_and(|later| later <= bound) && others {
            continue;
        }
        if let Some(parts) = choose(world, &free, open, demand) {
            return Some((*end, parts));
        }
        bound *= 2;
        while later.is_some_and(|later| later > bound) {
            bound *= 2;
        }
    }
    None
}
