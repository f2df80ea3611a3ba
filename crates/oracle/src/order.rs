//! What it means to come before another job in a queue.

use miserly_core::{JobNumber, Request, Time, draw};

use crate::{NaiveDraws, NaiveFacts, NaiveJob, NaiveOrder};

/// The jobs (positions in `jobs`), sorted as of `now`.
pub(crate) fn sorted(
    mut positions: Vec<usize>,
    jobs: &[NaiveJob],
    order: NaiveOrder,
    now: Time,
) -> Vec<usize> {
    positions.sort_by_key(|&position| arrival(position, jobs));
    let request = |position: usize| &jobs[position].request;
    match order {
        NaiveOrder::Rank(rank) => positions.sort_by_key(|&position| rank(request(position))),
        NaiveOrder::Value { value, weight, draws } => positions.sort_by(|&one, &other| {
            let value = |position| aged(request(position), value, weight, draws, now);
            value(other).partial_cmp(&value(one)).expect("values are numbers")
        }),
    }
    positions
}

/// The key that breaks every tie.
pub(crate) fn arrival(position: usize, jobs: &[NaiveJob]) -> (Time, JobNumber, usize) {
    let request = &jobs[position].request;
    (request.submit, request.number, position)
}

/// The value, less the weight of the time before the submission.
fn aged(request: &Request, value: fn(NaiveFacts) -> f64, weight: f64, draws: NaiveDraws, now: Time) -> f64 {
    let seconds = |ticks: i64| ticks as f64 / 1e6;
    let number = match draws {
        NaiveDraws::Once { .. } => 1 << 63,
        NaiveDraws::Pass { .. } => (1 << 63) + u64::try_from(now.ticks()).expect("after the origin"),
    };
    let (NaiveDraws::Once { seed } | NaiveDraws::Pass { seed }) = draws;
    let facts = NaiveFacts {
        estimate: seconds(request.estimate.ticks().max(1_000_000)),
        procs: request.procs() as f64,
        random: (draw(seed, request.number, number) / 2048) as f64 / 2f64.powi(53),
    };
    value(facts) - weight * seconds(request.submit.ticks())
}
