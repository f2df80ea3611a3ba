//! Sorting with a shadow guarantee. The first job of the order starts if all others can still meet
//! their deadlines.

use miserly_core::{Span, Time};

use crate::NaiveOrder;
use crate::conservative::{is_broken, put, repair, reserve_new};
use crate::order::arrival;
use crate::plan::{Plan, Reservation};
use crate::world::World;

/// Runs one pass. `deadlines` are by position.
pub(crate) fn pass(
    world: &mut World<'_>,
    kept: &mut Vec<Reservation>,
    deadlines: &mut [Time],
    order: NaiveOrder,
    times: i64,
) {
    if is_broken(world, kept) {
        repair(world, kept);
        for reservation in kept.iter() {
            deadlines[reservation.position] = deadlines[reservation.position].max(reservation.start);
        }
    }
    let known = kept.len();
    reserve_new(world, kept);
    for reservation in &kept[known..] {
        let interval = (reservation.start - world.now).ticks();
        deadlines[reservation.position] = world.now + Span::from_ticks(interval.saturating_mul(times));
    }
    while let Some((position, plan)) = first(world, kept, deadlines, order) {
        *kept = plan;
        world.start(position);
    }
}

/// Returns the first job of the order that may start, and the plan of the others after its start.
fn first(
    world: &World<'_>,
    kept: &[Reservation],
    deadlines: &[Time],
    order: NaiveOrder,
) -> Option<(usize, Vec<Reservation>)> {
    world.queue(order).into_iter().filter(|&position| world.fits_now(position)).find_map(|position| {
        let others: Vec<Reservation> =
            kept.iter().copied().filter(|reservation| reservation.position != position).collect();
        let plan =
            by_deadline(world, position, &others, deadlines).or_else(|| unmoved(world, position, others));
        Some((position, plan?))
    })
}

/// Returns new reservations of the others beside the job, if every deadline is met.
fn by_deadline(
    world: &World<'_>,
    position: usize,
    others: &[Reservation],
    deadlines: &[Time],
) -> Option<Vec<Reservation>> {
    let mut order: Vec<usize> = others.iter().map(|reservation| reservation.position).collect();
    order.sort_by_key(|&other| (deadlines[other], arrival(other, &world.jobs)));
    let mut plan = vec![Reservation { position, start: world.now }];
    for other in order {
        if put(world, &mut plan, other, world.now) > deadlines[other] {
            return None;
        }
    }
    plan.remove(0);
    Some(plan)
}

/// Returns the old reservations of the others, if the job fits beside them.
fn unmoved(world: &World<'_>, position: usize, others: Vec<Reservation>) -> Option<Vec<Reservation>> {
    let request = world.request(position);
    let start = Plan::new(world, &others).earliest_hole(world.now, request.procs().get(), request.planned());
    (start == world.now).then_some(others)
}
