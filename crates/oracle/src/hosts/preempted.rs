//! Preemption on hosts: running jobs make room for others, as `_run_now` of Slurm's `select/cons_tres` searches for them.

use std::collections::BTreeSet;

use miserly_core::{Demand, Request, Span};

use super::fit::Part;
use super::slurm::{choose, free_of, permits};
use super::world::{Running, World};
use crate::order::{arrival, sorted_from};
use crate::slurm::NaiveVictims;
use crate::{NaiveCycles, NaiveOnHosts, NaiveOrder};

/// Takes jobs off the machine that have left it, and gives others their processors back. Puts requeued jobs into the queue whose delay is
/// over. Returns whether some have left.
pub(super) fn settle(world: &mut World<'_>, cycles: NaiveCycles) -> bool {
    let now = world.now;
    let has_left = |running: &&Running| running.leaves.is_some_and(|(_, at)| at <= now) && !running.gone;
    let left: Vec<usize> = world.running.iter().filter(has_left).map(|running| running.job).collect();
    let have_left = !left.is_empty();
    for job in left {
        world.running.retain(|running| running.job != job);
        let back = now + cycles.preemption.delay;
        world.again.push((back, job));
        world.requeued[job] = Some((now, back));
    }
    let back: Vec<usize> = world.again.iter().filter(|(at, _)| *at <= now).map(|(_, job)| *job).collect();
    world.again.retain(|(at, _)| *at > now);
    world.submitted |= !back.is_empty();
    world.waiting.extend(back);
    for job in take_turns(world, cycles, None) {
        resume(world, job);
    }
    have_left
}

/// Returns the waiting jobs in this order, as a sort by merging leaves it that puts those that may take the places of others first.
pub(super) fn queue(world: &World<'_>, order: NaiveOrder, cycles: NaiveCycles) -> Vec<usize> {
    if cycles.preemption.rules[0].is_none() {
        return world.queue(order);
    }
    let mut jobs = world.jobs.to_vec();
    let mut arrivals = jobs.clone();
    for (job, requeued) in world.requeued.iter().enumerate() {
        if let Some((left, back)) = *requeued {
            jobs[job].request.submit = back;
            arrivals[job].request.submit = left;
        }
    }
    let mut waiting = world.waiting.clone();
    waiting.sort_by_key(|job| arrival(*job, &arrivals));
    let sorted = sorted_from(waiting.clone(), &jobs, order, world.now, &world.bypassed);
    let place = |job: usize| sorted.iter().position(|other| *other == job);
    waiting.sort_by_key(|job| arrival(*job, world.jobs));
    let takes = |by: usize, victim: usize| {
        rule(world.request(victim), cycles).is_some_and(|rule| {
            let queue = world.request(by).queue;
            has(rule.by, queue) || has(rule.by_priority, queue) && is_higher(world, by, victim)
        })
    };
    merged(&waiting, &|one, other| takes(one, other) || !takes(other, one) && place(one) < place(other))
}

/// Sorts each half, and merges them: the next job of the second half comes first if the next one of the first half does not.
fn merged(jobs: &[usize], is_first: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    if jobs.len() < 2 {
        return jobs.to_vec();
    }
    let half = jobs.len() / 2;
    let mut one = std::collections::VecDeque::from(merged(&jobs[..half], is_first));
    let mut other = std::collections::VecDeque::from(merged(&jobs[half..], is_first));
    let mut all = vec![];
    while !one.is_empty() && !other.is_empty() {
        let from = if is_first(one[0], other[0]) { &mut one } else { &mut other };
        all.extend(from.pop_front());
    }
    all.extend(one);
    all.extend(other);
    all
}

fn has(queues: [Option<u32>; 3], queue: Option<u32>) -> bool {
    queue.is_some() && queues.contains(&queue)
}

/// Returns whether a job has the higher priority. It does not change with time in the tests.
fn is_higher(world: &World<'_>, one: usize, other: usize) -> bool {
    let NaiveOnHosts::Slurm { order: NaiveOrder::Rank(rank), .. } = world.policy else {
        panic!("an order by a rank")
    };
    rank(world.request(one)) < rank(world.request(other))
}

/// Returns the length of the longest chain of queues of which each takes the places of the next one.
fn level(queue: Option<u32>, cycles: NaiveCycles) -> usize {
    let below = cycles.preemption.rules.into_iter().flatten().filter(|rule| rule.by.contains(&queue));
    below.filter(|_| queue.is_some()).map(|rule| 1 + level(Some(rule.queue), cycles)).max().unwrap_or(0)
}

/// Returns the hosts on which jobs end that leave the machine. One that ends by itself at the instant of its leave has left.
pub(super) fn completing(world: &World<'_>) -> BTreeSet<usize> {
    let end = world
        .running
        .iter()
        .filter(|running| running.leaves.is_some_and(|(ends, at)| ends <= world.now && world.now < at));
    end.flat_map(|running| running.parts.iter().map(|part| part.host)).collect()
}

/// Makes room for a job on these hosts, if it did not do so a short time ago.
pub(super) fn make_room(world: &mut World<'_>, job: usize, open: &BTreeSet<usize>, cycles: NaiveCycles) {
    let now = world.now;
    if world.made_room[job].is_some_and(|last| now < last + cycles.preemption.retry) {
        return;
    }
    let Some(victims) = search(world, job, open, cycles) else { return };
    world.made_room[job] = Some(now);
    for victim in victims {
        let grace = rule(world.request(victim), cycles).expect("it may be preempted").grace;
        let ends = now + grace;
        let running = world.running.iter_mut().find(|running| running.job == victim).expect("it runs");
        running.leaves = running.leaves.or(Some((ends, ends + cycles.preemption.completing)));
    }
}

/// Starts a job on processors of others, which stay without them. Returns whether it did.
pub(super) fn start_over(
    world: &mut World<'_>,
    job: usize,
    open: &BTreeSet<usize>,
    cycles: NaiveCycles,
) -> bool {
    let (queue, demand) = (world.request(job).queue, world.demand(job));
    let mut found = None;
    // Those of lower levels lend processors, as few levels as can be.
    for below in (1..=level(queue, cycles)).rev() {
        let lends = |other: usize| {
            let victim = world.request(other);
            let is_one = rule(victim, cycles).is_some_and(|rule| rule.suspended && has(rule.by, queue));
            is_one && level(victim.queue, cycles) < below
        };
        let parts = choose(world, &free_of(world, lends, |_| false), open, &demand);
        if parts.is_none() {
            break;
        }
        found = parts;
    }
    let lend = |rule: &NaiveVictims| rule.suspended && has(rule.by, queue);
    let Some(parts) = found.filter(|_| cycles.preemption.rules.iter().flatten().any(lend)) else {
        return false;
    };
    take_turns(world, cycles, Some((job, &parts)));
    world.start(job, parts);
    for job in take_turns(world, cycles, None) {
        resume(world, job);
    }
    true
}

/// Takes the processors of jobs that jobs of higher levels have, with one that starts. Returns the jobs without processors that could have
/// them now.
fn take_turns(world: &mut World<'_>, cycles: NaiveCycles, new: Option<(usize, &Vec<Part>)>) -> Vec<usize> {
    let mut turns: Vec<usize> = (0..world.jobs.len()).filter(|job| parts_of(world, *job).is_some()).collect();
    let running = |job: usize| world.running.iter().find(|running| running.job == job);
    turns.extend(new.map(|(job, _)| job));
    turns.sort_by_key(|job| arrival(*job, world.jobs));
    turns.sort_by_key(|job| running(*job).map_or(world.now, |running| running.since));
    turns.sort_by_key(|job| running(*job).is_some_and(|running| running.paused.is_some()));
    turns.sort_by_key(|job| std::cmp::Reverse(level(world.request(*job).queue, cycles)));
    // First those that keep their processors whoever comes: no job that starts now, or none at all, suspends them.
    let is_lent = |job: usize| {
        let rule = rule(world.request(job), cycles).filter(|rule| rule.suspended);
        rule.is_some_and(|rule| new.is_none_or(|(by, _)| has(rule.by, world.request(by).queue)))
    };
    turns.sort_by_key(|job| running(*job).is_none_or(|running| running.paused.is_some()) || is_lent(*job));
    let mut left: Vec<u64> =
        world.machine.hosts().iter().map(|host| host.capacity.cpus_count().get()).collect();
    let (mut stop, mut resume) = (vec![], vec![]);
    for job in turns {
        let parts = parts_of(world, job).or(new.map(|(_, parts)| parts)).expect("it is there");
        let fits = parts.iter().all(|part| part.amount.cpus_count().get() <= left[part.host]);
        for part in parts.iter().filter(|_| fits) {
            left[part.host] -= part.amount.cpus_count().get();
        }
        match running(job).map(|running| running.paused.is_some()) {
            Some(true) if fits => resume.push(job),
            Some(false) if !fits => stop.push(job),
            _ => {}
        }
    }
    for running in world.running.iter_mut().filter(|running| stop.contains(&running.job)) {
        running.paused = Some(world.now);
    }
    resume
}

fn resume(world: &mut World<'_>, job: usize) {
    let now = world.now;
    let running = world.running.iter_mut().find(|running| running.job == job).expect("it is there");
    let since = running.paused.take().expect("it has no processors");
    running.end = running.end + (now - since);
    running.expected = now + (running.expected - since).max(Span::TICK);
    running.noticed = false;
}

fn parts_of<'a>(world: &'a World<'_>, job: usize) -> Option<&'a Vec<Part>> {
    let running = world.running.iter().find(|running| running.job == job && !running.gone);
    running.map(|running| &running.parts)
}

fn rule(request: &Request, cycles: NaiveCycles) -> Option<NaiveVictims> {
    cycles.preemption.rules.into_iter().flatten().find(|rule| Some(rule.queue) == request.queue)
}

/// Returns the running jobs that may leave the machine for a job, in the order in which they are tried.
pub(super) fn candidates(world: &World<'_>, job: usize, cycles: NaiveCycles) -> Vec<usize> {
    let may_be = |running: &&Running| {
        let queue = world.request(job).queue;
        rule(world.request(running.job), cycles).is_some_and(|rule| {
            let is_by =
                has(rule.by, queue) || has(rule.by_priority, queue) && is_higher(world, job, running.job);
            let is_there = running.since < world.now && world.now - running.since >= rule.exempt;
            is_by && is_there && !rule.suspended
        })
    };
    let mut running: Vec<&Running> = world.holding().filter(may_be).collect();
    running.sort_by_key(|running| arrival(running.job, world.jobs));
    if cycles.preemption.youngest {
        running.sort_by_key(|running| std::cmp::Reverse(running.since));
    } else {
        let rank = |running: &&Running| rule(world.request(running.job), cycles).map_or(0, |rule| rule.rank);
        running.sort_by_key(|running| (rank(running), running.parts.len()));
    }
    running.into_iter().map(|running| running.job).collect()
}

/// A running job, and the count by which Slurm sorts it: the hosts of the room on which it is, or a large number.
#[derive(Clone, Copy)]
struct Candidate {
    job: usize,
    usable: usize,
}

const FIRST: usize = 99_999;

fn search(world: &World<'_>, job: usize, open: &BTreeSet<usize>, cycles: NaiveCycles) -> Option<Vec<usize>> {
    let demand: Demand = world.demand(job);
    let parts_of = |job: usize| parts_of(world, job).map_or(&[][..], Vec::as_slice);
    let is_there = |job: &usize| {
        parts_of(*job).iter().any(|part| open.contains(&part.host) && permits(world, &demand, part.host))
    };
    let jobs = candidates(world, job, cycles).into_iter().filter(is_there);
    let mut list: Vec<Candidate> = jobs.map(|job| Candidate { job, usable: 0 }).collect();
    let mut passes = 0;
    loop {
        let mut found: Option<(usize, Vec<Part>)> = None;
        let mut gone = BTreeSet::new();
        for (nth, candidate) in list.iter_mut().enumerate() {
            gone.insert(candidate.job);
            candidate.usable = 0;
            let free = free_of(world, |_| false, |job| gone.contains(&job));
            if let Some(parts) = choose(world, &free, open, &demand) {
                found = Some((nth, parts));
                break;
            }
        }
        let (maker, room) = found?;
        let shared = |job: usize| {
            parts_of(job).iter().filter(|part| room.iter().any(|other| other.host == part.host)).count()
        };
        let is_last = passes > cycles.preemption.reorder;
        passes += 1;
        if is_last || list.len() as u64 <= passes {
            return Some(list[..=maker].iter().map(|one| one.job).filter(|job| shared(*job) > 0).collect());
        }
        if cycles.preemption.strict {
            let first = list.remove(maker);
            list.insert(0, first);
            continue;
        }
        list[maker].usable = FIRST;
        for (nth, candidate) in list.iter_mut().enumerate() {
            if nth != maker {
                candidate.usable = if nth < maker { shared(candidate.job) } else { 0 };
            }
        }
        list.sort_by_key(|candidate| std::cmp::Reverse(candidate.usable));
    }
}
