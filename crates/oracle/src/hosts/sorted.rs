//! Sorting with a shadow guarantee, on hosts. The first job of the order starts if all others can
//! still meet their deadlines.

use miserly_core::Span;

use crate::NaiveOrder;
use crate::order::arrival;

use super::fit::Part;
use super::kept::{any_missed, repair, reserve_new};
use super::plan::Reservation;
use super::world::World;

/// Runs one pass. A deadline is so many `times` the first reserved wait.
pub(super) fn pass(world: &mut World<'_>, order: NaiveOrder, times: i64) {
    if any_missed(world) {
        repair(world);
        for Reservation { job, at, .. } in &world.kept {
            world.deadlines[*job] = world.deadlines[*job].max(*at);
        }
    }
    let known = world.kept.len();
    reserve_new(world);
    for Reservation { job, at, .. } in &world.kept[known..] {
        let wait = (*at - world.now).ticks();
        world.deadlines[*job] = world.now + Span::from_ticks(wait.saturating_mul(times));
    }
    while let Some((job, parts, others)) = first(world, order) {
        world.kept = others;
        world.start(job, parts);
    }
}

/// Returns the first job of the order that may start, its place, and the reservations of the others.
fn first(world: &World<'_>, order: NaiveOrder) -> Option<(usize, Vec<Part>, Vec<Reservation>)> {
    world.queue(order).into_iter().find_map(|job| {
        let others: Vec<Reservation> = world.kept.iter().filter(|kept| kept.job != job).cloned().collect();
        let (parts, others) = by_deadline(world, job, &others).or_else(|| {
            let beside = world.fits_now(job, &others)?;
            Some((beside, others))
        })?;
        Some((job, parts, others))
    })
}

/// Returns the place of the job now, and new reservations of the others, if every deadline is met.
fn by_deadline(
    world: &World<'_>,
    job: usize,
    others: &[Reservation],
) -> Option<(Vec<Part>, Vec<Reservation>)> {
    let parts = world.fits_now(job, &[])?;
    let mut order: Vec<usize> = others.iter().map(|other| other.job).collect();
    order.sort_by_key(|&other| (world.deadlines[other], arrival(other, world.jobs)));
    let mut plan = vec![Reservation { job, at: world.now, parts: parts.clone() }];
    for other in order {
        let place = world.earliest(other, world.now, &plan);
        if place.at > world.deadlines[other] {
            return None;
        }
        plan.push(place);
    }
    plan.remove(0);
    Some((parts, plan))
}
