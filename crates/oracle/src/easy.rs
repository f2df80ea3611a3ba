//! EASY backfilling.

use miserly_core::Time;

use crate::NaiveOrder;
use crate::plan::Plan;
use crate::world::World;
use crate::{fcfs, order};

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
    let behind = world.waiting.iter().copied().filter(|&position| position != head).collect();
    for position in order::sorted(behind, &world.ranked, backfill, world.now) {
        if !world.fits_now(position) {
            continue;
        }
        let procs = i128::from(world.request(position).procs().get());
        if world.now + world.request(position).planned() <= shadow {
            world.start(position);
        } else if procs <= extra {
            extra -= procs;
            world.start(position);
        }
    }
    Some(head)
}

/// Returns the expected shadow time of the head, and the extra processors beside it at that time.
fn shadow(world: &World<'_>, head: usize) -> (Time, i128) {
    let plan = Plan::new(world, &[]);
    let need = i128::from(world.request(head).procs().get());
    let shadow = plan.ends().filter(|&end| plan.free_at(end) >= need).min();
    let shadow = shadow.expect("the head fits once all running jobs have ended");
    (shadow, plan.free_at(shadow) - need)
}
