//! Nanoseconds per evaluation of four formulas by four other crates, this crate, and a closure with
//! the platform's logarithms.

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use exmex::Express;
use fasteval::{Compiler, Evaler};

/// Sorted, as exmex requires.
const NAMES: [&str; 4] = ["estimate", "procs", "submit", "wait"];
const VALUES: [f64; 4] = [3600.0, 48.0, 1_234_567.0, 5400.0];

/// A formula in the notation of most crates, and the same in Rust.
type Case = (&'static str, &'static str, fn(&[f64; 4]) -> f64);

const CASES: [Case; 4] = [
    ("xfactor", "wait / estimate", |v| v[3] / v[0]),
    ("wfp3", "(wait / estimate)^3 * procs", |v| (v[3] / v[0]).powi(3) * v[1]),
    ("unicep", "wait / (log2(procs) * estimate)", |v| v[3] / (v[1].log2() * v[0])),
    ("f1", "log10(estimate) * procs + 870 * log10(submit)", |v| v[0].log10() * v[1] + 870.0 * v[2].log10()),
];

type Group<'a> = BenchmarkGroup<'a, WallTime>;

fn rivals(criterion: &mut Criterion) {
    for (name, text, by_hand) in CASES {
        let mut group = criterion.benchmark_group(name);
        group.bench_function("by hand", |bench| bench.iter(|| black_box(by_hand)(black_box(&VALUES))));
        ours(&mut group, text);
        with_exmex(&mut group, text);
        with_fasteval(&mut group, text);
        with_meval(&mut group, text);
        with_evalexpr(&mut group, text);
        group.finish();
    }
}

fn ours(group: &mut Group<'_>, text: &str) {
    let formula = miserly_formula::Formula::parse(text, &NAMES).unwrap();
    group.bench_function("miserly-formula", |bench| bench.iter(|| formula.eval(black_box(&VALUES))));
}

fn with_exmex(group: &mut Group<'_>, text: &str) {
    let flat = exmex::parse::<f64>(text).unwrap();
    let used: Vec<f64> = flat.var_names().iter().map(|name| VALUES[index(name)]).collect();
    group.bench_function("exmex", |bench| bench.iter(|| flat.eval(black_box(&used))));
}

/// fasteval has no log2 or log10: `log(2, x)` and `log(10, x)` replace them.
fn with_fasteval(group: &mut Group<'_>, text: &str) {
    let text = text.replace("log2(", "log(2, ").replace("log10(", "log(10, ");
    let mut slab = fasteval::Slab::new();
    let parsed = fasteval::Parser::new().parse(&text, &mut slab.ps).unwrap();
    let compiled = parsed.from(&slab.ps).compile(&slab.ps, &mut slab.cs);
    group.bench_function("fasteval", |bench| {
        bench.iter(|| {
            let values = black_box(&VALUES);
            let mut names = |name: &str, _: Vec<f64>| NAMES.iter().position(|known| *known == name).map(|at| values[at]);
            compiled.eval(&slab, &mut names).unwrap()
        });
    });
    group.bench_function("fasteval, values in a map", |bench| {
        let mut names: BTreeMap<String, f64> =
            NAMES.iter().zip(VALUES).map(|(name, value)| ((*name).to_owned(), value)).collect();
        bench.iter(|| compiled.eval(&slab, black_box(&mut names)).unwrap());
    });
}

/// meval has no logarithms but `ln`.
fn with_meval(group: &mut Group<'_>, text: &str) {
    let text = text.replace("log2(", "1.4426950408889634 * ln(").replace("log10(", "0.4342944819032518 * ln(");
    let expression: meval::Expr = text.parse().unwrap();
    let bound = expression.bindn(&NAMES).unwrap();
    group.bench_function("meval", |bench| bench.iter(|| bound(black_box(&VALUES))));
}

fn with_evalexpr(group: &mut Group<'_>, text: &str) {
    use evalexpr::{ContextWithMutableVariables, HashMapContext, Value};
    let text = text.replace("log2(", "math::log2(").replace("log10(", "math::log10(");
    let tree = evalexpr::build_operator_tree(&text).unwrap();
    let mut context = HashMapContext::new();
    group.bench_function("evalexpr", |bench| {
        bench.iter(|| {
            for (name, value) in NAMES.iter().zip(black_box(VALUES)) {
                context.set_value((*name).to_owned(), Value::Float(value)).unwrap();
            }
            tree.eval_number_with_context(&context).unwrap()
        });
    });
}

fn index(name: &str) -> usize {
    NAMES.iter().position(|known| *known == name).unwrap()
}

criterion_group!(benches, rivals);
criterion_main!(benches);
