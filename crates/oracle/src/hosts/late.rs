//! Sorting with a bound, on hosts: a job past its bound goes to the head.

use miserly_core::Time;

use crate::NaiveOrder;
use crate::late::Beside;

use super::recomputed;
use super::world::World;

/// Runs one pass. Returns the next bound of a waiting job.
pub(super) fn pass(
    world: &mut World<'_>,
    beside: &mut Beside,
    order: NaiveOrder,
    times: i64,
) -> Option<Time> {
    for job in world.queue(NaiveOrder::ARRIVAL) {
        beside.arrive(world.now, job, world.request(job), times);
    }
    for job in beside.late(world.now, &world.queue(NaiveOrder::ARRIVAL)).0 {
        match world.fits_now(job, &[]).filter(|_| world.head.is_none()) {
            Some(parts) => world.start(job, parts),
            None => world.head = world.head.or(Some(job)),
        }
    }
    recomputed::pass(world, order, order, Some(1), false);
    world.head = None;
    beside.late(world.now, &world.waiting).1
}
