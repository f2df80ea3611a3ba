//! EASY backfilling.

use miserly_core::Time;

use crate::NaiveOrder;
use crate::fcfs;
use crate::plan::Plan;
use crate::world::World;

/// Starts heads while they fit, then all jobs that do not delay the remaining head, which is
/// returned.
///
/// A `reserved` head precedes all other jobs.
pub(crate) fn pass(
    world: &mut World<'_>,
    queue: NaiveOrder,
    backfill: NaiveOrder,
    reserved: Option<usize>,
) -> Option<usize> {
    let blocked = reserved.filter(|&position| !world.fits_now(position));
    if blocked.is_none() {
        if let Some(position) = reserved {
            world.start(position);
        }
        fcfs::pass(world, queue);
    }
    let head = blocked.or_else(|| world.queue(queue).first().copied())?;
    let (shadow, mut extra) = shadow(world, head);
    let first = match world.guards[head].first_shadow {
        Some((found, first)) if found != world.now => first,
        _ => shadow,
    };
    world.guards[head].first_shadow.get_or_insert((world.now, shadow)).1 = first;
    if world.guards[head].cautious.is_some() {
        assert_guard(world, head, queue, [first, shadow]);
    }
    let behind = world.waiting.iter().copied().filter(|&position| position != head).collect();
    for position in world.sorted(behind, backfill) {
        if !world.fits_now(position) {
            continue;
        }
        let procs = i128::from(world.request(position).procs().get());
        let estimate = world.requested[position].request.planned();
        if world.now + world.request(position).planned() <= shadow && admits(world, head, position, shadow) {
            world.start(position);
        } else if procs <= extra {
            extra -= procs;
            if world.guards[position].cautious.is_some()
                && world.now + world.request(position).planned() <= shadow
            {
                world.jobs[position].request.estimate = estimate;
            }
            world.start(position);
        }
    }
    Some(head)
}

/// Returns whether the guard of the head, if any, lets a job start that is expected to end in time.
fn admits(world: &World<'_>, head: usize, position: usize, shadow: Time) -> bool {
    let Some(cautious) = world.guards[position].cautious else { return true };
    let by_estimate = world.now + world.requested[position].request.planned() <= shadow;
    let (_, first) = world.guards[head].first_shadow.expect("the head is blocked");
    let guard = first + world.requested[head].request.estimate;
    by_estimate || (world.now < guard && world.now + cautious <= shadow.max(guard))
}

/// Asserts that the guard limits the delay of the head, where nothing is inserted before it and no job
/// outlives its estimate.
fn assert_guard(world: &World<'_>, head: usize, queue: NaiveOrder, [first, shadow]: [Time; 2]) {
    let all = || world.requested.iter();
    let by_arrival = matches!(queue, NaiveOrder::Rank(rank) if all().all(|job| rank(&job.request) == 0));
    if by_arrival && all().all(|job| job.runtime.0 <= job.request.planned()) {
        let longest = all().map(|job| job.request.planned()).max().expect("the head");
        assert!(shadow <= first + world.requested[head].request.planned() + longest);
    }
}

/// Returns the expected shadow time of the head, and the extra processors beside it at that time.
fn shadow(world: &World<'_>, head: usize) -> (Time, i128) {
    let plan = Plan::new(world, &[]);
    let need = i128::from(world.request(head).procs().get());
    let shadow = plan.ends().filter(|&end| plan.free_at(end) >= need).min();
    let shadow = shadow.expect("the head fits once all running jobs have ended");
    (shadow, plan.free_at(shadow) - need)
}
