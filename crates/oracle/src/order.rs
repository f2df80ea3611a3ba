//! The order of jobs in a queue.

use std::cmp::Ordering;

use miserly_core::{JobNumber, Kind, Request, Time, draw};

use crate::usage::{Run, Used};
use crate::{ExactFacts, NaiveDecay, NaiveDraws, NaiveFacts, NaiveJob, NaiveOrder, Ratio};

/// Returns the positions in `jobs`, sorted as of `now`, without counts of bypasses.
pub(crate) fn sorted(positions: Vec<usize>, jobs: &[NaiveJob], order: NaiveOrder, now: Time) -> Vec<usize> {
    sorted_counting(positions, jobs, order, now, &vec![0; jobs.len()])
}

/// Returns the positions in `jobs`, sorted as of `now`, with the usage of these runs.
pub(crate) fn sorted_by_usage(
    mut positions: Vec<usize>,
    jobs: &[NaiveJob],
    order: NaiveOrder,
    now: Time,
    runs: &[Run],
) -> Vec<usize> {
    let NaiveOrder::Exact { usage: Some(decay), .. } = order else {
        return sorted(positions, jobs, order, now);
    };
    let half_life = match decay {
        NaiveDecay::Never => None,
        NaiveDecay::HalfLife(half_life) => Some(half_life),
    };
    let of_job = |job: &NaiveJob| {
        let of_user = Used::new(|run| run.user == job.request.user, runs, now, half_life);
        [of_user, Used::new(|run| run.group == job.request.group, runs, now, half_life)]
    };
    let used: Vec<[Used; 2]> = jobs.iter().map(of_job).collect();
    positions.sort_by_key(|&position| arrival(position, jobs));
    sorted_with(positions, jobs, order, now, &vec![0; jobs.len()], &used)
}

/// Returns the positions, sorted as of `now`. `bypassed` has the number of bypasses of each job.
pub(crate) fn sorted_counting(
    mut positions: Vec<usize>,
    jobs: &[NaiveJob],
    order: NaiveOrder,
    now: Time,
    bypassed: &[u32],
) -> Vec<usize> {
    positions.sort_by_key(|&position| arrival(position, jobs));
    sorted_from(positions, jobs, order, now, bypassed)
}

/// Returns the positions, sorted as of `now`. Equal ones stay in their order.
pub(crate) fn sorted_from(
    positions: Vec<usize>,
    jobs: &[NaiveJob],
    order: NaiveOrder,
    now: Time,
    bypassed: &[u32],
) -> Vec<usize> {
    sorted_with(positions, jobs, order, now, bypassed, &vec![[Used::nothing(); 2]; jobs.len()])
}

fn sorted_with(
    mut positions: Vec<usize>,
    jobs: &[NaiveJob],
    order: NaiveOrder,
    now: Time,
    bypassed: &[u32],
    used: &[[Used; 2]],
) -> Vec<usize> {
    let request = |position: usize| &jobs[position].request;
    match order {
        NaiveOrder::Rank(rank) => positions.sort_by_key(|&position| rank(request(position))),
        NaiveOrder::Value { value, weight, draws } => positions.sort_by(|&one, &other| {
            let facts = |position: usize| facts(request(position), draws, now, bypassed[position]);
            let aged =
                |position: usize| value(facts(position)) - weight * seconds(request(position).submit.ticks());
            falling(aged(one), aged(other))
        }),
        NaiveOrder::Exact { value, weight, .. } => positions.sort_by(|&one, &other| {
            let aged = |position: usize| {
                let submit = Ratio::new(request(position).submit.ticks().into(), 1_000_000);
                value(&exact_facts(request(position), now, bypassed[position], used[position]))
                    - weight * submit
            };
            aged(one).falling(aged(other))
        }),
    }
    positions
}

/// Compares two values, the larger first and NaN last.
fn falling(one: f64, other: f64) -> Ordering {
    match (one.is_nan(), other.is_nan()) {
        (false, false) => other.partial_cmp(&one).expect("both are numbers"),
        (one, other) => one.cmp(&other),
    }
}

/// Returns the key that breaks every tie.
pub(crate) fn arrival(position: usize, jobs: &[NaiveJob]) -> (Time, JobNumber, usize) {
    let request = &jobs[position].request;
    (request.submit, request.number, position)
}

fn facts(request: &Request, draws: NaiveDraws, now: Time, bypassed: u32) -> NaiveFacts {
    let number = match draws {
        NaiveDraws::Once { .. } => 1 << 63,
        NaiveDraws::Pass { .. } => (1 << 63) + u64::try_from(now.ticks()).expect("after the origin"),
    };
    let (NaiveDraws::Once { seed } | NaiveDraws::Pass { seed }) = draws;
    NaiveFacts {
        estimate: seconds(request.estimate.ticks().max(1_000_000)),
        procs: request.procs().get() as f64,
        wait: seconds(now.ticks() - request.submit.ticks()),
        submit: seconds(request.submit.ticks()),
        memory: request.demand.get(Kind::Memory) as f64,
        user: request.user.map_or(-1.0, f64::from),
        random: (draw(seed, request.number, number) / 2048) as f64 / 2f64.powi(53),
        bypassed: f64::from(bypassed),
    }
}

fn exact_facts(request: &Request, now: Time, bypassed: u32, [used, of_group]: [Used; 2]) -> ExactFacts {
    let seconds = |ticks: i64| Ratio::new(ticks.into(), 1_000_000);
    ExactFacts {
        estimate: seconds(request.estimate.ticks().max(1_000_000)),
        procs: Ratio::new(request.procs().get().into(), 1),
        wait: seconds(now.ticks() - request.submit.ticks()),
        memory: Ratio::new(request.demand.get(Kind::Memory).into(), 1),
        user: request.user.map_or(-1, i64::from).into(),
        bypassed: i64::from(bypassed).into(),
        usage_share: used.share,
        usage: used.hours,
        group_usage_share: of_group.share,
        group_usage: of_group.hours,
    }
}

fn seconds(ticks: i64) -> f64 {
    ticks as f64 / 1e6
}
