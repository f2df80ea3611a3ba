//! The availability profile.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion};
use miserly_core::{Span, Time, draw};
use miserly_policies::shared::Profile;

const PROCS: u32 = 1024;
const BREAKPOINTS: [i64; 4] = [10, 100, 1000, 10_000];
/// How many different questions are asked in turn.
const QUESTIONS: i64 = 64;

pub(crate) fn bench(criterion: &mut Criterion) {
    for (name, build) in [("backlog", backlog as fn(i64) -> Profile), ("comb", comb)] {
        earliest(criterion, name, build);
        take_and_give(criterion, name, build);
    }
}

/// Where jobs would go. In the comb no hole but the last is long enough, and each of them is looked
/// at.
fn earliest(criterion: &mut Criterion, name: &str, build: fn(i64) -> Profile) {
    let mut group = criterion.benchmark_group(format!("profile, {name}: earliest"));
    for size in BREAKPOINTS {
        let profile = build(size);
        let mut question = 0;
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| {
                question = (question + 1) % QUESTIONS;
                let (procs, span) = match name {
                    "comb" => (PROCS, Span::from_ticks(20)),
                    _ => job(-question),
                };
                black_box(profile.earliest(Time::ZERO, span, procs))
            });
        });
    }
}

/// A reservation made and given back somewhere in the profile.
fn take_and_give(criterion: &mut Criterion, name: &str, build: fn(i64) -> Profile) {
    let mut group = criterion.benchmark_group(format!("profile, {name}: take and give"));
    for size in BREAKPOINTS {
        let mut profile = build(size);
        let mut question = 0;
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| {
                question = (question + 1) % QUESTIONS;
                let from = Time::from_ticks(question * 10 * size / QUESTIONS + 3);
                let to = from + Span::from_ticks(500);
                profile.take(from, to, 1);
                profile.give(from, to, 1);
            });
        });
    }
}

/// The profile of a queue of reservations: each job at its earliest hole, two breakpoints per job.
fn backlog(size: i64) -> Profile {
    let mut profile = Profile::new(PROCS);
    for number in 1..=size / 2 {
        let (procs, span) = job(number);
        let start = profile.earliest(Time::ZERO, span, procs);
        profile.take(start, start + span, procs);
    }
    profile
}

/// Busy for ten ticks, free for ten ticks, and so on.
fn comb(size: i64) -> Profile {
    let mut profile = Profile::new(PROCS);
    for tooth in 0..size / 2 {
        let start = Time::from_ticks(20 * tooth);
        profile.take(start, start + Span::from_ticks(10), 1 + u32::try_from(tooth % 7).unwrap_or(0));
    }
    profile
}

/// The width and length of a job: a third of the machine at most, mostly narrow.
fn job(number: i64) -> (u32, Span) {
    let drawn = draw(1, number, 0);
    // Both are below a few thousand.
    let (widest, length) = (1 << (drawn % 9), drawn >> 32 & 0x3ff);
    let procs = 1 + u32::try_from((drawn >> 16) % widest).unwrap_or(0);
    (procs, Span::from_ticks(10 + i64::try_from(length).unwrap_or(0)))
}
