//! A reservation for every job, made at its submission and kept.
//!
//! Reservations are listed in the order in which their starts were decided. One that moves goes to
//! the end.

use miserly_core::{Resources, Time};

use crate::NaiveOrder;
use crate::order::{arrival, sorted_counting};

use super::plan::{Plan, Reservation};
use super::world::World;

/// Runs one pass. `ended` is true if the pass follows the end of a job.
pub(super) fn pass(world: &mut World<'_>, order: NaiveOrder, ended: bool) {
    if any_missed(world) {
        repair(world);
    }
    if ended {
        compress(world, order);
    }
    reserve_new(world);
    start_due(world);
}

/// Returns the instant of the next pass that is necessary without an event.
///
/// It is the next reserved start that is feasible even if no overdue job ends until then. An
/// infeasible start needs no pass before such an end.
pub(super) fn wake(world: &World<'_>) -> Option<Time> {
    let plan = Plan::new(world, &world.kept);
    // The plan holds overdue jobs only at the current instant, and no reserved start remains there.
    let can_be_kept = |reservation: &&Reservation| {
        let mut hosts = reservation.parts.iter().map(|part| part.host);
        let mut cells = reservation.parts.iter().flat_map(|part| &part.devices);
        hosts.all(|host| overdue_on(world, host).fits_in(&plan.free(host, reservation.at)))
            && cells
                .all(|(cell, _)| overdue_in_cell(world, *cell) <= plan.free_in_cell(*cell, reservation.at))
    };
    world.kept.iter().filter(can_be_kept).map(|reservation| reservation.at).min()
}

fn overdue_on(world: &World<'_>, host: usize) -> Resources {
    let parts = world.overdue().flat_map(|running| &running.parts).filter(|part| part.host == host);
    parts.fold(Resources::NONE, |sum, part| sum.plus(&part.amount))
}

fn overdue_in_cell(world: &World<'_>, cell: usize) -> u64 {
    let held = world.overdue().flat_map(|running| &running.parts).flat_map(|part| &part.devices);
    held.filter(|(other, _)| *other == cell).map(|(_, amount)| amount).sum()
}

/// Returns whether a reserved start is past, or may have to wait for an overdue job.
pub(super) fn any_missed(world: &World<'_>) -> bool {
    let missed = world.kept.iter().any(|reservation| reservation.at < world.now);
    missed || world.overdue().next().is_some()
}

/// Removes all reservations and restores each at its old start and place, or at the earliest later
/// fit.
pub(super) fn repair(world: &mut World<'_>) {
    let before = std::mem::take(&mut world.kept);
    let mut lifted = before.clone();
    lifted.sort_by_key(|reservation| (reservation.at, arrival(reservation.job, world.jobs)));
    for Reservation { job, at, parts } in lifted {
        let from = at.max(world.now);
        let stays = Plan::new(world, &world.kept).holds(from, world.request(job).planned(), &parts);
        let place =
            if stays { Reservation { job, at: from, parts } } else { world.earliest(job, from, &world.kept) };
        world.kept.push(place);
    }
    // First the unmoved reservations in their old order, then the moved ones in the order of their
    // moves.
    let unmoved = |reservation: &Reservation| before.iter().position(|other| other == reservation);
    world.kept.sort_by_key(|reservation| unmoved(reservation).unwrap_or(before.len()));
}

/// Gives each reservation in turn the earliest start. It keeps its hosts if the start is not
/// earlier.
fn compress(world: &mut World<'_>, order: NaiveOrder) {
    for job in in_order(world, order) {
        let index = world.kept.iter().position(|reservation| reservation.job == job).expect("just listed");
        let old = world.kept.remove(index);
        let new = world.earliest(job, world.now, &world.kept);
        assert!(new.at <= old.at, "its old place is free, so it never has to move later");
        if new.at < old.at {
            world.kept.push(new);
        } else {
            world.kept.insert(index, old);
        }
    }
}

pub(super) fn reserve_new(world: &mut World<'_>) {
    for job in world.queue(NaiveOrder::ARRIVAL) {
        if world.kept.iter().all(|reservation| reservation.job != job) {
            let place = world.earliest(job, world.now, &world.kept);
            world.kept.push(place);
        }
    }
}

fn start_due(world: &mut World<'_>) {
    let now = world.now;
    let (due, later) = std::mem::take(&mut world.kept).into_iter().partition(|kept| kept.at == now);
    world.kept = later;
    let due: Vec<Reservation> = due;
    for Reservation { job, parts, .. } in due {
        world.start(job, parts);
    }
}

/// Returns the jobs that have reservations.
fn in_order(world: &World<'_>, order: NaiveOrder) -> Vec<usize> {
    let jobs = world.kept.iter().map(|reservation| reservation.job).collect();
    sorted_counting(jobs, world.jobs, order, world.now, &world.bypassed)
}
