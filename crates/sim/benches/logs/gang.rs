//! Rows that take turns: hundreds of jobs in tens of rows, on a small and on a large machine.

use criterion::{Criterion, SamplingMode, Throughput};

use crate::input::made_exactly;
use crate::scheduling::run;

const PACKINGS: [&str; 2] = ["gang(packing=buddy)", "gang(packing=migration)"];

pub(crate) fn bench(criterion: &mut Criterion) {
    // On a large machine hundreds of small jobs share each row.
    let sizes = [(128, 10_000), (65_536, 2_000)];
    let logs = sizes.map(|(procs, jobs)| made_exactly(&format!("{procs}-pes"), jobs, procs, 0.85));
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
