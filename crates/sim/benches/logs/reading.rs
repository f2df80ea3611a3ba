//! From text to jobs: the survey, then the jobs, as every run does it.

use std::hint::black_box;

use criterion::{Criterion, Throughput};

use crate::input::Log;

pub(crate) fn bench(criterion: &mut Criterion, logs: &[Log]) {
    let mut group = criterion.benchmark_group("read");
    for log in logs {
        group.throughput(Throughput::Elements(log.survey().records));
        group.bench_function(&log.name, |bencher| {
            bencher.iter(|| {
                for job in log.logged_jobs(&log.survey()) {
                    let _ = black_box(job);
                }
            });
        });
    }
}
