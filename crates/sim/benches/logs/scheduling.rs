//! A whole run: reading, scheduling, and the metrics.

use criterion::{Criterion, SamplingMode, Throughput};
use miserly_core::{EventOrder, Machine, Procs, Span};
use miserly_policies::PolicySpec;
use miserly_sim::{Job, Metrics, Simulation};
use miserly_workload::TraceError;

use crate::input::Log;

const POLICIES: [&str; 8] = [
    "fcfs",
    "easy",
    "easy(backfill=shortest)",
    "easy(order=random, draw=pass)",
    "conservative",
    "conservative(order=random, draw=pass)",
    "conservative(order=shortest, keep_reservations=false)",
    "ss",
];

pub(crate) fn bench(criterion: &mut Criterion, logs: &[Log]) {
    for policy in POLICIES {
        let mut group = criterion.benchmark_group(policy);
        group.sampling_mode(SamplingMode::Flat);
        for log in logs {
            group.throughput(Throughput::Elements(log.survey().records));
            group.bench_function(&log.name, |bencher| {
                bencher.iter(|| run(log.procs, &mut log.jobs(&log.survey()), policy));
            });
        }
    }
}

/// Runs a policy and measures the schedule.
pub(crate) fn run(
    procs: Procs,
    jobs: &mut dyn Iterator<Item = Result<Job, TraceError>>,
    policy: &str,
) -> Metrics {
    let machine = Machine::plain(procs);
    let chosen: PolicySpec = policy.parse().expect("a policy");
    let policy = chosen.build(&machine, 1).expect("one that runs on a plain machine");
    let mut metrics = Metrics::new(procs, Span::ZERO);
    let mut simulation = Simulation::new(machine, policy, EventOrder::Batched);
    simulation.run(jobs, &mut [&mut metrics]).expect("the run ends well");
    metrics
}
