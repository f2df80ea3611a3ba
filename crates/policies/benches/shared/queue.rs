//! The queue index.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion};
use miserly_core::{Entry, JobId, Request, Resources, Span, Time, draw};
use miserly_policies::shared::{Key, QueueIndex, Staircase, Waiting};

const JOBS: [u32; 5] = [10, 100, 1000, 10_000, 100_000];

pub(crate) fn bench(criterion: &mut Criterion) {
    search(criterion, "search, nobody fits", Staircase::of_shadow(1, Span::from_ticks(9), 0));
    search(criterion, "search, one in 2000 fits", Staircase::of_shadow(17, Span::from_ticks(89), 1));
    search(criterion, "search, one in 20 fits", Staircase::of_shadow(65, Span::from_ticks(2000), 1));
    let mut group = criterion.benchmark_group("queue: remove and insert");
    for size in JOBS {
        let mut queue = queue(size);
        let mut number = 0;
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| {
                number = (number + 7) % size;
                let job = waiting(number);
                queue.remove(&job.key);
                queue.insert(job);
            });
        });
    }
}

/// The first job in the queue that fits under a staircase.
fn search(criterion: &mut Criterion, name: &str, stairs: Staircase) {
    let mut group = criterion.benchmark_group(format!("queue: {name}"));
    for size in JOBS {
        let queue = queue(size);
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| black_box(queue.next_admitted(None, black_box(&stairs))));
        });
    }
}

fn queue(size: u32) -> QueueIndex {
    let mut queue = QueueIndex::new();
    (0..size).for_each(|number| queue.insert(waiting(number)));
    queue
}

/// A job of 2 to 257 processors and 10 to 10 009 ticks; the queue is in order of arrival.
fn waiting(number: u32) -> Waiting {
    let drawn = draw(1, number.into(), 0);
    let procs = 2 + (drawn & 0xff);
    let estimate = Span::from_ticks(10 + i64::try_from((drawn >> 32) % 10_000).unwrap_or(0));
    let request = Request::new(number.into(), Time::ZERO, estimate, Resources::cpus(procs));
    let entry = Entry::waiting(request, number.into());
    Waiting {
        key: Key::arrival(&entry),
        job: JobId(number),
        procs: u32::try_from(procs).unwrap_or(0),
        span: estimate,
    }
}
