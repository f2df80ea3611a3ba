//! Selective reservations on hosts.

use crate::selective::is_entitled;
use crate::{NaiveOrder, Ratio};

use super::recomputed::count_bypasses;
use super::world::World;

/// One pass: first the entitled jobs start or get a reservation, then all others start that fit beside those.
pub(super) fn pass(world: &mut World<'_>, order: NaiveOrder, threshold: Ratio) {
    let queue = world.queue(order);
    let now = world.now;
    let (entitled, others): (Vec<usize>, Vec<usize>) =
        queue.iter().partition(|&&job| is_entitled(&world.jobs[job], now, threshold));
    let mut reserved = Vec::new();
    for job in entitled {
        let earliest = world.earliest(job, now, &reserved);
        if earliest.at == now {
            world.start(job, earliest.parts);
        } else {
            reserved.push(earliest);
        }
    }
    for job in others {
        if let Some(parts) = world.fits_now(job, &reserved) {
            world.start(job, parts);
        }
    }
    count_bypasses(world, &queue);
}
