//! Preemption on hosts: running jobs make room for others, as `_run_now` of Slurm's `select/cons_tres` searches for them.

use std::collections::BTreeSet;

use miserly_core::{Demand, Request, Span};

use super::fit::Part;
use super::slurm::{choose, exceeded, free, permits};
use super::world::{Running, World};
use crate::order::arrival;
use crate::slurm::NaiveVictims;
use crate::{NaiveCycles, NaiveOrder};

/// Takes jobs off the machine whose grace time is over, and starts those for which they leave. Puts requeued jobs into the queue whose
/// delay is over.
pub(super) fn settle(world: &mut World<'_>, order: NaiveOrder, cycles: NaiveCycles) {
    let is_over = |running: &&Running| running.leaves.is_some_and(|(at, _)| at <= world.now) && !running.gone;
    let over: Vec<usize> = world.running.iter().filter(is_over).map(|running| running.job).collect();
    let by: Vec<usize> = world.running.iter().filter(is_over).filter_map(|r| Some(r.leaves?.1)).collect();
    for job in over {
        take_off(world, job, cycles);
    }
    let now = world.now;
    let back: Vec<usize> = world.again.iter().filter(|(at, _)| *at <= now).map(|(_, job)| *job).collect();
    world.again.retain(|(at, _)| *at > now);
    world.waiting.extend(back);
    for job in queue(world, order, cycles).into_iter().filter(|job| by.contains(job)) {
        if exceeded(world, cycles.limits, job) != (false, false) {
            continue;
        }
        let all = (0..world.machine.hosts().len()).collect();
        if let Some(parts) = choose(world, &free(world), &all, &world.demand(job)) {
            world.start(job, parts);
        }
    }
}

/// Returns the waiting jobs in this order, behind all that may take their places.
pub(super) fn queue(world: &World<'_>, order: NaiveOrder, cycles: NaiveCycles) -> Vec<usize> {
    let mut jobs = world.queue(order);
    jobs.sort_by_key(|job| std::cmp::Reverse(level(world.request(*job).queue, cycles)));
    jobs
}

/// Returns the length of the longest chain of queues of which each takes the places of the next one.
fn level(queue: Option<u32>, cycles: NaiveCycles) -> usize {
    let below = cycles.preemption.rules.into_iter().flatten().filter(|rule| rule.by.contains(&queue));
    below.filter(|_| queue.is_some()).map(|rule| 1 + level(Some(rule.queue), cycles)).max().unwrap_or(0)
}

/// Makes room for a job on these hosts. Returns whether it started.
pub(super) fn make_room(
    world: &mut World<'_>,
    job: usize,
    open: &BTreeSet<usize>,
    cycles: NaiveCycles,
) -> bool {
    if world.running.iter().any(|running| running.leaves.is_some_and(|(_, by)| by == job)) {
        return false;
    }
    let Some(victims) = search(world, job, open, cycles) else { return false };
    let mut waits = false;
    for victim in victims {
        let grace = rule(world.request(victim), cycles).expect("it may be preempted").grace;
        let now = world.now;
        let running = world.running.iter_mut().find(|running| running.job == victim).expect("it runs");
        if running.leaves.is_some() {
            waits = true;
        } else if grace > Span::ZERO {
            running.leaves = Some((now + grace, job));
            waits = true;
        } else {
            take_off(world, victim, cycles);
        }
    }
    let demand = world.demand(job);
    match choose(world, &free(world), open, &demand) {
        Some(parts) if !waits => {
            world.start(job, parts);
            true
        }
        _ => false,
    }
}

fn take_off(world: &mut World<'_>, job: usize, cycles: NaiveCycles) {
    world.running.retain(|running| running.job != job);
    world.again.push((world.now + cycles.preemption.delay, job));
}

fn rule(request: &Request, cycles: NaiveCycles) -> Option<NaiveVictims> {
    cycles.preemption.rules.into_iter().flatten().find(|rule| Some(rule.queue) == request.queue)
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
    let is_there = |running: &&Running| {
        running.parts.iter().any(|part| open.contains(&part.host) && permits(world, &demand, part.host))
    };
    let may_be = |running: &&Running| {
        let queue = world.request(job).queue;
        rule(world.request(running.job), cycles).is_some_and(|rule| {
            let is_by = queue.is_some_and(|queue| rule.by.contains(&Some(queue)));
            is_by && running.since < world.now && world.now - running.since >= rule.exempt
        })
    };
    let mut running: Vec<&Running> = world.holding().filter(may_be).filter(is_there).collect();
    running.sort_by_key(|running| arrival(running.job, world.jobs));
    if cycles.preemption.youngest {
        running.sort_by_key(|running| std::cmp::Reverse(running.since));
    } else {
        let rank = |running: &&Running| rule(world.request(running.job), cycles).map_or(0, |rule| rule.rank);
        running.sort_by_key(|running| (rank(running), running.parts.len()));
    }
    let mut list: Vec<Candidate> =
        running.into_iter().map(|running| Candidate { job: running.job, usable: 0 }).collect();
    let parts_of = |job: usize| {
        world.running.iter().find(|running| running.job == job).map_or(&[][..], |running| &running.parts)
    };
    let mut passes = 0;
    loop {
        let mut free = free(world);
        let mut found: Option<(usize, Vec<Part>)> = None;
        for (nth, candidate) in list.iter_mut().enumerate() {
            for part in parts_of(candidate.job) {
                free[part.host] = free[part.host].plus(&part.amount);
            }
            candidate.usable = 0;
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
