//! Conservative backfilling: every waiting job keeps a reserved start.
//!
//! Reservations are listed in the order in which their starts were decided. One that moves goes to
//! the end.

use miserly_core::Time;

use crate::NaiveOrder;
use crate::order::arrival;
use crate::plan::{Plan, Reservation};
use crate::world::World;

/// Runs one pass. `ended` is true if the pass follows the end of a job.
pub(crate) fn pass(world: &mut World<'_>, kept: &mut Vec<Reservation>, order: NaiveOrder, ended: bool) {
    if is_broken(world, kept) {
        repair(world, kept);
    }
    if ended {
        compress(world, kept, order);
    }
    reserve_new(world, kept);
    start_due(world, kept);
}

/// Runs one pass in which all reservations are recomputed in this order and then dropped.
pub(crate) fn pass_without_guarantees(world: &mut World<'_>, order: NaiveOrder) {
    let mut reservations = Vec::new();
    for position in world.queue(order) {
        if put(world, &mut reservations, position, world.now) == world.now {
            reservations.pop();
            world.start(position);
        }
    }
}

/// Returns the instant of the next pass that is necessary without an event.
///
/// It is the next reserved start that is feasible even if no overdue job ends until then. An
/// infeasible start needs no pass before such an end.
pub(crate) fn wake(world: &World<'_>, kept: &[Reservation]) -> Option<Time> {
    let overdue: u64 = world.overdue().map(|running| world.request(running.position).procs().get()).sum();
    let plan = Plan::new(world, kept);
    let starts = kept.iter().map(|reservation| reservation.start);
    // The plan holds overdue jobs only at the current instant, and no reserved start remains there.
    starts.filter(|&start| overdue == 0 || plan.free_at(start) >= i128::from(overdue)).min()
}

pub(crate) fn is_broken(world: &World<'_>, kept: &[Reservation]) -> bool {
    world.any_overdue()
        || kept.iter().any(|reservation| reservation.start < world.now)
        || Plan::new(world, kept).over_commits()
}

/// Removes all reservations and restores each at its old start, or as soon after as possible.
pub(crate) fn repair(world: &World<'_>, kept: &mut Vec<Reservation>) {
    let before = std::mem::take(kept);
    let mut lifted = before.clone();
    lifted.sort_by_key(|reservation| (reservation.start, arrival(reservation.position, &world.jobs)));
    for reservation in lifted {
        let not_before = reservation.start.max(world.now);
        put(world, kept, reservation.position, not_before);
    }
    // First the unmoved reservations in their old order, then the moved ones in the order of their
    // moves.
    let unmoved = |reservation: &Reservation| before.iter().position(|other| other == reservation);
    kept.sort_by_key(|reservation| unmoved(reservation).unwrap_or(before.len()));
}

/// Gives each reservation in turn the earliest hole, except those that start now.
fn compress(world: &World<'_>, kept: &mut Vec<Reservation>, order: NaiveOrder) {
    let positions = kept.iter().map(|reservation| reservation.position).collect();
    for position in world.sorted(positions, order) {
        let index = kept.iter().position(|reservation| reservation.position == position);
        let index = index.expect("just listed");
        let old = kept.remove(index);
        if old.start == world.now || put(world, kept, position, world.now) == old.start {
            kept.retain(|reservation| reservation.position != position);
            kept.insert(index, old);
        }
        let new = kept.iter().find(|reservation| reservation.position == position).expect("put back");
        assert!(new.start <= old.start, "its old place is free, so it never has to move later");
    }
}

pub(crate) fn reserve_new(world: &World<'_>, kept: &mut Vec<Reservation>) {
    for position in world.queue(NaiveOrder::ARRIVAL) {
        if kept.iter().all(|reservation| reservation.position != position) {
            put(world, kept, position, world.now);
        }
    }
}

/// Reserves the earliest hole for a job.
pub(crate) fn put(world: &World<'_>, kept: &mut Vec<Reservation>, position: usize, not_before: Time) -> Time {
    let request = world.request(position);
    let start = Plan::new(world, kept).earliest_hole(not_before, request.procs().get(), request.planned());
    kept.push(Reservation { position, start });
    start
}

fn start_due(world: &mut World<'_>, kept: &mut Vec<Reservation>) {
    let now = world.now;
    for due in kept.iter().filter(|reservation| reservation.start == now) {
        world.start(due.position);
    }
    kept.retain(|reservation| reservation.start != now);
}
