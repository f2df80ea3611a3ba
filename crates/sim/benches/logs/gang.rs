//! Rows that take turns: hundreds of jobs in tens of rows, on a small and on a large machine.

use criterion::{Criterion, SamplingMode, Throughput};

use crate::input::made_exactly;
use crate::scheduling::run;

const PACKINGS: [&str; 2] = ["gang(packing=buddy)", "gang(packing=migration)"];

pub(crate) fn bench(criterion: &mut Criterion) {
    let logs = [128, 65_536].map(|procs| made_exactly(&format!("{procs}-pes"), 10_000, procs, 0.85));
    for policy in PACKINGS {
        let mut group = criterion.benchmark_group(policy);
        group.sampling_mode(SamplingMode::Flat);
        for log in &logs {
            group.throughput(Throughput::Elements(log.survey().records));
            group.bench_function(&log.name, |bencher| {
                bencher.iter(|| run(log.procs, &mut log.jobs(&log.survey()), policy));
            });
        }
    }
}
