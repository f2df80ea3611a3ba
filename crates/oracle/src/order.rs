//! What it means to come before another job in a queue.

use miserly_core::{JobNumber, Time};

use crate::{NaiveJob, NaiveOrder};

/// The jobs (positions in `jobs`), sorted.
pub(crate) fn sorted(mut positions: Vec<usize>, jobs: &[NaiveJob], order: NaiveOrder) -> Vec<usize> {
    positions.sort_by_key(|&position| (rank(&jobs[position], order), arrival(position, jobs)));
    positions
}

/// The key that breaks every tie.
pub(crate) fn arrival(position: usize, jobs: &[NaiveJob]) -> (Time, JobNumber, usize) {
    let request = &jobs[position].request;
    (request.submit, request.number, position)
}

fn rank(job: &NaiveJob, order: NaiveOrder) -> i128 {
    let estimate = i128::from(job.request.estimate.ticks());
    let procs = i128::from(job.request.procs());
    match order {
        NaiveOrder::Arrival => 0,
        NaiveOrder::Shortest => estimate,
        NaiveOrder::Longest => -estimate,
        NaiveOrder::Narrowest => procs,
        NaiveOrder::Widest => -procs,
    }
}
