//! What it means to come before another job in a queue.

use std::cmp::Ordering;

use miserly_core::{JobNumber, Kind, Request, Time, draw};

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
            falling(value(one), value(other))
        }),
    }
    positions
}

/// The larger first; what is not a number last.
fn falling(one: f64, other: f64) -> Ordering {
    match (one.is_nan(), other.is_nan()) {
        (false, false) => other.partial_cmp(&one).expect("both are numbers"),
        (one, other) => one.cmp(&other),
    }
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
        wait: seconds(now.ticks() - request.submit.ticks()),
        submit: seconds(request.submit.ticks()),
        memory: request.demand.get(Kind::Memory) as f64,
        user: request.user.map_or(-1.0, f64::from),
        random: (draw(seed, request.number, number) / 2048) as f64 / 2f64.powi(53),
    };
    value(facts) - weight * seconds(request.submit.ticks())
}
