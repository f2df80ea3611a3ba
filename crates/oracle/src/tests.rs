//! Small workloads with known starts, and invariants on random ones.

mod cases;
mod litmus;
mod random;

use miserly_core::{ActualRuntime, EventOrder, Request, Resources, Span, Time};

use crate::{NaiveJob, NaiveOrder, NaivePolicy, schedule};

const BOTH: [EventOrder; 2] = [EventOrder::Batched, EventOrder::Sequential];
const FCFS: NaivePolicy = NaivePolicy::Fcfs { order: NaiveOrder::ARRIVAL };
const EASY: NaivePolicy =
    NaivePolicy::Easy { order: NaiveOrder::ARRIVAL, backfill: NaiveOrder::ARRIVAL, hold: false };
const CONSERVATIVE: NaivePolicy = NaivePolicy::Conservative { order: NaiveOrder::ARRIVAL };

/// (submit, runtime, processors, estimate), in seconds.
type Literal = (i64, i64, u64, i64);

/// Jobs 1, 2, 3...
fn jobs(literals: &[Literal]) -> Vec<NaiveJob> {
    let numbered = (1..).zip(literals);
    numbered
        .map(|(number, &(submit, runtime, procs, estimate))| {
            let (submit, estimate) = (Time::from_secs(submit).unwrap(), Span::from_secs(estimate).unwrap());
            let request = Request::new(number, submit, estimate, Resources::cpus(procs));
            NaiveJob { request, runtime: ActualRuntime(Span::from_secs(runtime).unwrap()) }
        })
        .collect()
}

#[track_caller]
fn check(policy: NaivePolicy, event_order: EventOrder, procs: u64, literals: &[Literal], starts: &[i64]) {
    let starts: Vec<Time> = starts.iter().map(|&start| Time::from_secs(start).unwrap()).collect();
    assert_eq!(schedule(procs, &jobs(literals), policy, event_order), starts, "{policy:?}, {event_order}");
}
