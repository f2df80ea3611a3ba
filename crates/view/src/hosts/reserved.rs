//! The idle processors that are reserved.

use crate::{Facts, PoolFacts, State};
use miserly_scene::HOUR;

/// Returns the idle processors of a pool that are reserved for a job within an hour: by its free capacity, or by the promises
/// if that is not known.
pub(super) fn reserved(facts: &Facts, place: usize, pool: &PoolFacts) -> u64 {
    let idle = pool.cpus.saturating_sub(pool.held);
    let soon = facts.now.saturating_add(HOUR);
    let within = pool.slices.iter().take_while(|slice| slice.from.as_millisecond() < soon);
    let least = within.map(|slice| slice.cpus_free).min();
    idle - least.unwrap_or_else(|| least_free(facts, place, idle)).min(idle)
}

/// Returns the fewest processors that are free within an hour: running jobs free theirs at their latest ends, and promised jobs
/// start as late as promised.
fn least_free(facts: &Facts, place: usize, idle: u64) -> u64 {
    let soon = facts.now.saturating_add(HOUR);
    let signed = |procs: u64| i64::try_from(procs).unwrap_or(i64::MAX);
    let change = |job: &crate::Job| match (job.state, job.promised) {
        (State::Running, _) => Some((job.end?.max(facts.now), false, signed(job.procs))),
        (state, Some(start)) if state.is_before_start() && state != State::Held => {
            Some((start.max(facts.now), true, -signed(job.procs)))
        }
        _ => None,
    };
    let of_pool = facts.jobs.iter().filter(|job| job.pool == place);
    let mut changes: Vec<(i64, bool, i64)> =
        of_pool.filter_map(|job| change(job)).filter(|(at, ..)| *at < soon).collect();
    // Ends are before starts at the same instant.
    changes.sort_unstable();
    let mut free = signed(idle);
    let mut least = free;
    for (_, _, procs) in changes {
        free = free.saturating_add(procs);
        least = least.min(free);
    }
    u64::try_from(least).unwrap_or(0)
}
