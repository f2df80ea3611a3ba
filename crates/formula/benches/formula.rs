//! The cost of an evaluation compared with a closure in Rust. For other crates see
//! `benches/rivals`.

use std::hint::black_box;
use std::time::Duration;

use criterion::Criterion;
use miserly_formula::Formula;

const NAMES: [&str; 4] = ["wait", "estimate", "procs", "submit"];
const VALUES: [f64; 4] = [5400.0, 3600.0, 48.0, 1_234_567.0];

/// A formula and the same in Rust.
type Case = (&'static str, &'static str, fn(&[f64]) -> f64);

const CASES: [Case; 4] = [
    ("xfactor", "wait / estimate", |v| v[0] / v[1]),
    ("wfp3", "(wait / estimate)^3 * procs", |v| {
        let ratio = v[0] / v[1];
        ratio * ratio * ratio * v[2]
    }),
    ("unicep", "wait / (log2(procs) * estimate)", |v| v[0] / (libm::log2(v[2]) * v[1])),
    ("f1", "log10(estimate) * procs + 870 * log10(submit)", |v| {
        libm::log10(v[1]) * v[2] + 870.0 * libm::log10(v[3])
    }),
];

fn main() {
    let short = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(700));
    let mut criterion = short.configure_from_args();
    for (name, text, by_hand) in CASES {
        let mut group = criterion.benchmark_group(name);
        let formula = Formula::parse(text, &NAMES).expect(text);
        group.bench_function("formula", |bench| bench.iter(|| formula.eval(black_box(&VALUES))));
        group.bench_function("by hand", |bench| bench.iter(|| black_box(by_hand)(black_box(&VALUES))));
        group.bench_function("parse", |bench| bench.iter(|| Formula::parse(black_box(text), &NAMES)));
        group.finish();
    }
    criterion.final_summary();
}
