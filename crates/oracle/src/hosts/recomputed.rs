//! Reservations for the first jobs of the queue, recomputed at every pass.

use crate::NaiveOrder;

use super::world::World;

/// Starts jobs in queue order or reserves for them, up to `depth` jobs, then starts all others that
/// fit beside.
pub(super) fn pass(
    world: &mut World<'_>,
    order: NaiveOrder,
    backfill: NaiveOrder,
    depth: Option<usize>,
    hold: bool,
) {
    let mut queue = world.queue(order);
    if let Some(head) = world.head {
        queue.retain(|&job| job != head);
        queue.insert(0, head);
    }
    let mut reserved = Vec::new();
    for &job in &queue {
        if depth.is_some_and(|depth| reserved.len() >= depth) {
            break;
        }
        let earliest = world.earliest(job, world.now, &reserved);
        if earliest.at == world.now {
            world.start(job, earliest.parts);
            world.head = world.head.filter(|&head| head != job);
        } else {
            reserved.push(earliest);
        }
    }
    if hold {
        world.head = world.head.or(reserved.first().map(|first| first.job));
    }
    for job in world.queue(backfill) {
        if reserved.iter().any(|reserved| reserved.job == job) {
            continue;
        }
        if let Some(parts) = world.fits_now(job, &reserved) {
            world.start(job, parts);
        }
    }
    count_bypasses(world, &queue);
}

/// Counts a bypass of each waiting job for every job behind it that started.
pub(super) fn count_bypasses(world: &mut World<'_>, queue: &[usize]) {
    for (place, &job) in queue.iter().enumerate() {
        let behind = queue[place..].iter().filter(|other| !world.waiting.contains(other));
        if world.waiting.contains(&job) {
            world.bypassed[job] += u32::try_from(behind.count()).expect("short tests");
        }
    }
}
