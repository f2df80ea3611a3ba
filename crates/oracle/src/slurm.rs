//! The scheduling of Slurm: a main loop after each event, and cycles at the multiples of an interval.

use miserly_core::{Span, Time};

use crate::NaiveOrder;
use crate::fcfs;
use crate::plan::{Plan, Reservation};
use crate::world::World;

/// The settings of the cycles.
#[derive(Clone, Copy, Debug)]
pub struct NaiveCycles {
    /// The time between two cycles.
    pub interval: Span,
    /// The unit to which ends are rounded up.
    pub resolution: Span,
    /// How far ahead a reservation may begin.
    pub window: Span,
    /// The number of jobs that a cycle tries.
    pub most: usize,
}

/// Runs the main loop, and the cycle of this instant unless it has been run.
///
/// Returns the instant of the next cycle, if jobs wait.
pub(crate) fn pass(
    world: &mut World<'_>,
    order: NaiveOrder,
    cycles: NaiveCycles,
    last: &mut Option<Time>,
) -> Option<Time> {
    fcfs::pass(world, order);
    if world.waiting.is_empty() {
        return None;
    }
    let is_multiple = world.now.ticks() % cycles.interval.ticks() == 0;
    if is_multiple && *last != Some(world.now) {
        *last = Some(world.now);
        cycle(world, order, cycles);
    }
    let done = world.now.ticks() / cycles.interval.ticks();
    Some(Time::from_ticks((done + 1) * cycles.interval.ticks()))
}

fn cycle(world: &mut World<'_>, order: NaiveOrder, cycles: NaiveCycles) {
    let estimates: Vec<Span> = world.jobs.iter().map(|job| job.request.estimate).collect();
    let mut reservations: Vec<Reservation> = vec![];
    for position in world.queue(order).into_iter().take(cycles.most) {
        let planned = world.request(position).planned();
        let procs = world.request(position).procs().get();
        let plan = Plan::new(world, &reservations);
        if plan.is_hole(world.now, procs, rounded(world.now, planned, cycles.resolution)) {
            world.start(position);
            continue;
        }
        let start = plan.earliest_hole(world.now, procs, planned);
        if start <= world.now + cycles.window {
            // The plan has the rounded end, for this cycle only.
            world.jobs[position].request.estimate = rounded(start, planned, cycles.resolution);
            reservations.push(Reservation { position, start });
        }
    }
    for (job, estimate) in world.jobs.iter_mut().zip(estimates) {
        job.request.estimate = estimate;
    }
}

/// Returns the span up to the first multiple of the unit at or behind its end.
fn rounded(start: Time, span: Span, unit: Span) -> Span {
    let end = (start + span).ticks();
    let units = end.div_euclid(unit.ticks()) + i64::from(end.rem_euclid(unit.ticks()) > 0);
    Time::from_ticks(units * unit.ticks()) - start
}
