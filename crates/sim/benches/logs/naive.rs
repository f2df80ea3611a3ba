//! The policies beside their reference implementations, on the beginning of each log.
//!
//! The references would take too long for a whole log.

use std::hint::black_box;

use criterion::{Criterion, SamplingMode, Throughput};
use miserly_core::EventOrder;
use miserly_oracle::{NaiveJob, NaiveOrder, NaivePolicy, schedule};

use crate::input::Log;
use crate::scheduling::run;

const JOBS: usize = 500;

pub(crate) fn bench(criterion: &mut Criterion, logs: &[Log]) {
    let order = NaiveOrder::ARRIVAL;
    let policies = [
        ("easy", NaivePolicy::Easy { order, backfill: order, hold: false }),
        ("conservative", NaivePolicy::Conservative { order }),
    ];
    for (name, naive) in policies {
        let mut group = criterion.benchmark_group(format!("{name}, first {JOBS} jobs"));
        group.throughput(Throughput::Elements(JOBS as u64)).sampling_mode(SamplingMode::Flat);
        for log in logs {
            let jobs = log.first(JOBS);
            group.bench_function(format!("{}, ours", log.name), |bencher| {
                bencher.iter(|| run(log.procs, &mut jobs.iter().cloned().map(Ok), name));
            });
            let jobs: Vec<NaiveJob> = jobs
                .iter()
                .map(|job| NaiveJob { request: job.request.clone(), runtime: job.runtime })
                .collect();
            group.bench_function(format!("{}, naive", log.name), |bencher| {
                bencher.iter(|| schedule(log.procs.into(), black_box(&jobs), naive, EventOrder::Batched));
            });
        }
    }
}
