//! Selective reservations: only jobs whose expansion factor has reached a threshold have one.

use miserly_core::Time;

use crate::conservative::put;
use crate::plan::Plan;
use crate::world::World;
use crate::{NaiveJob, NaiveOrder, Ratio};

/// One pass: first the entitled jobs start or get a reservation, then all others start that fit beside those.
pub(crate) fn pass(world: &mut World<'_>, order: NaiveOrder, threshold: Ratio) {
    let mut reservations = Vec::new();
    let entitled = |world: &World<'_>, job: usize| is_entitled(&world.jobs[job], world.now, threshold);
    for position in world.queue(order) {
        if entitled(world, position) && put(world, &mut reservations, position, world.now) == world.now {
            reservations.pop();
            world.start(position);
        }
    }
    for position in world.queue(order) {
        let request = world.request(position);
        let (procs, planned) = (request.procs().get(), request.planned());
        if !entitled(world, position)
            && Plan::new(world, &reservations).earliest_hole(world.now, procs, planned) == world.now
        {
            world.start(position);
        }
    }
}

/// Whether (wait + estimate) / estimate has reached the threshold.
pub(crate) fn is_entitled(job: &NaiveJob, now: Time, threshold: Ratio) -> bool {
    let ticks = |span: i64| Ratio::from(span);
    let (wait, estimate) = (now - job.request.submit, job.request.planned());
    let xfactor = (ticks(wait.ticks()) + ticks(estimate.ticks())) / ticks(estimate.ticks());
    xfactor.falling(threshold).is_le()
}
