//! Invariants of any workload.

use miserly_core::{EventOrder, Span, Time};
use miserly_test_support::Draws;

use super::{BOTH, CONSERVATIVE, EASY, FCFS, jobs};
use crate::{NaiveJob, NaiveOrder, NaivePolicy, schedule};

const PROCS: u64 = 5;
const ORDERS: [NaiveOrder; 5] = [
    NaiveOrder::ARRIVAL,
    NaiveOrder::SHORTEST,
    NaiveOrder::LONGEST,
    NaiveOrder::NARROWEST,
    NaiveOrder::WIDEST,
];

struct Dice(Draws);

impl Dice {
    fn below(&mut self, limit: i64) -> i64 {
        i64::try_from(self.0.below(limit.unsigned_abs())).unwrap()
    }
}

/// Returns twelve jobs in a short time, so that instants coincide.
fn workload(seed: u64, exact: bool) -> Vec<NaiveJob> {
    let mut dice = Dice(Draws::new(seed));
    let literals: Vec<_> = (0..12)
        .map(|_| {
            let (submit, estimate) = (dice.below(12), dice.below(9) + i64::from(exact));
            let runtime = if exact { estimate } else { dice.below(12) };
            (submit, runtime, u64::try_from(1 + dice.below(5)).unwrap(), estimate)
        })
        .collect();
    jobs(&literals)
}

/// Returns the same jobs with a tick for a second, so that the tick of an overdue job matters.
/// Wake-ups every few ticks then stay affordable.
fn in_ticks(mut jobs: Vec<NaiveJob>) -> Vec<NaiveJob> {
    for job in &mut jobs {
        job.request.submit = Time::from_ticks(job.request.submit.secs());
        job.request.estimate = Span::from_ticks(job.request.estimate.secs());
        job.runtime.0 = Span::from_ticks(job.runtime.0.secs());
    }
    jobs
}

fn policies() -> Vec<NaivePolicy> {
    let mut all = Vec::new();
    for order in ORDERS {
        all.push(NaivePolicy::Fcfs { order });
        all.push(NaivePolicy::Conservative { order });
        all.extend(ORDERS.map(|backfill| NaivePolicy::Easy { order, backfill, hold: false }));
    }
    all
}

#[test]
fn no_machine_is_over_committed_and_no_job_starts_before_its_submit() {
    for seed in 0..300 {
        let jobs = in_ticks(workload(seed, false));
        for policy in policies() {
            for event_order in BOTH {
                let starts = schedule(PROCS, &jobs, policy, event_order);
                for (job, &start) in jobs.iter().zip(&starts) {
                    assert!(start >= job.request.submit, "{seed} {policy:?} {event_order}");
                    let held = held_at(start, &jobs, &starts);
                    assert!(held <= PROCS, "{seed} {policy:?} {event_order}: {held} at {start}");
                }
            }
        }
    }
}

fn held_at(time: Time, jobs: &[NaiveJob], starts: &[Time]) -> u64 {
    let running =
        jobs.iter().zip(starts).filter(|(job, start)| **start <= time && time < **start + job.runtime.0);
    running.map(|(job, _)| job.request.procs().get()).sum()
}

#[test]
fn with_exact_estimates_every_order_of_compression_is_alike() {
    for seed in 0..300 {
        let jobs = workload(seed, true);
        for event_order in BOTH {
            let starts = schedule(PROCS, &jobs, CONSERVATIVE, event_order);
            for order in ORDERS {
                assert_eq!(schedule(PROCS, &jobs, NaivePolicy::Conservative { order }, event_order), starts);
            }
        }
    }
}

#[test]
fn with_exact_estimates_in_arrival_order_the_instants_are_alike() {
    for seed in 0..300 {
        let jobs = workload(seed, true);
        for policy in [FCFS, CONSERVATIVE] {
            let [batch, sequential] = BOTH.map(|event_order| schedule(PROCS, &jobs, policy, event_order));
            assert_eq!(batch, sequential, "{seed} {policy:?}");
        }
    }
}

#[test]
fn the_order_of_the_slice_does_not_matter() {
    for seed in 0..100 {
        let jobs = in_ticks(workload(seed, false));
        let reversed: Vec<NaiveJob> = jobs.iter().rev().cloned().collect();
        for policy in [FCFS, EASY, CONSERVATIVE] {
            let mut starts = schedule(PROCS, &reversed, policy, EventOrder::Batched);
            starts.reverse();
            assert_eq!(schedule(PROCS, &jobs, policy, EventOrder::Batched), starts, "{seed} {policy:?}");
        }
    }
}
