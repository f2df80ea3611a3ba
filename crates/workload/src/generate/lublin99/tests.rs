use sha2::{Digest, Sha256};

use super::*;
use crate::generate::find_model;
use crate::trace::hex;

fn model(set: &[(&str, &str)], procs: u64, seed: u64) -> Box<dyn Model> {
    let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let procs = Some(miserly_core::Procs::new(procs));
    let options = ModelOptions { procs, seed: Some(seed), set, ..ModelOptions::default() };
    (find_model(Lublin99::NAME).unwrap().build)(&options).unwrap()
}

/// Returns submission, runtime, processors and queue of each job.
fn jobs(model: &dyn Model) -> Vec<[u64; 4]> {
    let log = model.generate().unwrap();
    log.jobs
        .iter()
        .map(|job| [job.submit, job.runtime, job.procs.into(), job.queue.unwrap().into()])
        .collect()
}

/// A digest of the jobs, a line each with blanks between the four numbers.
fn digest(jobs: &[[u64; 4]]) -> String {
    let line = |job: &[u64; 4]| job.map(|number| number.to_string()).join(" ") + "\n";
    let hash = Sha256::digest(jobs.iter().map(line).collect::<String>());
    hex(&hash)[..16].to_owned()
}

/// The two logs of the `RLScheduler` benchmark, which the archive's program made; `lublin_256.swf` has
/// no types.
#[test]
fn the_logs_of_the_benchmark() {
    let first = jobs(&*model(&[("types", "all")], 256, 1_487_089_399));
    assert_eq!(first[..3], [[5094, 12_072, 16, 0], [5170, 2, 1, 0], [6742, 24_089, 1, 0]]);
    assert_eq!(first[9_999], [7_711_701, 13_929, 3, 0]);
    assert_eq!(digest(&first), "f340309b9ecbd40a");
    let sizes = [("size_high", "8"), ("size_med", "5.6")];
    let second = jobs(&*model(&sizes, 256, 1_568_124_476));
    assert_eq!(second[..3], [[139, 4277, 256, 0], [269, 158, 128, 0], [1062, 10, 17, 0]]);
    assert_eq!(second[8], [6761, 106, 16, 1]);
    assert_eq!(second[9_999], [4_602_313, 4, 128, 0]);
    assert_eq!(digest(&second), "eb3627d07a969ed7");
}

/// Shares of serial jobs and of powers of two are parameters; the mean logarithm of a runtime is
/// p a1 b1 + (1 - p) a2 b2 before the cut at 12.
#[test]
fn the_distributions_have_the_published_parameters_over_ten_seeds() {
    for (types, published) in [("batch", BATCH), ("interactive", INTERACTIVE), ("all", ALL)] {
        let all: Vec<[u64; 4]> =
            (1..=10).flat_map(|seed| jobs(&*model(&[("types", types)], 128, seed))).collect();
        let share = |holds: &dyn Fn(u64) -> bool| {
            all.iter().filter(|[_, _, procs, _]| holds(*procs)).count() as f64 / all.len() as f64
        };
        let serial = share(&|procs| procs == 1);
        assert!((serial - published.serial).abs() < 0.006, "{types} {serial}");
        assert!(share(&|procs| procs.is_power_of_two()) > published.serial + published.power_of_two);
        let LublinParameters { short_shape, short_scale, long_shape, long_scale, .. } = published;
        let of_size = |procs: u64| {
            let short = (published.short_slope * procs as f64 + published.short_base).clamp(0.0, 1.0);
            short * short_shape * short_scale + (1.0 - short) * long_shape * long_scale
        };
        let mean = |value: &dyn Fn(&[u64; 4]) -> f64| all.iter().map(value).sum::<f64>() / all.len() as f64;
        let (found, expected) = (mean(&|job| (job[1] as f64).ln()), mean(&|job| of_size(job[2])));
        assert!((found - expected).abs() < 0.1, "{types} {found} {expected}");
        // Between the logarithms 3.5 and 4.5 lies the size 16, if the distribution is uniform there.
        let width = |low: f64, high: f64| (high - low) / (published.size_med - published.size_low);
        if published.size_med >= 4.5 {
            let sixteen = published.size_prob * width(3.5, 4.5) * published.power_of_two;
            let others = published.size_prob
                * width(15.5_f64.log2(), 16.5_f64.log2())
                * (1.0 - published.serial - published.power_of_two);
            let found = share(&|procs| procs == 16);
            assert!((found - sixteen - others).abs() < 0.006, "{types} {found} {sixteen}");
        }
    }
}

#[test]
fn the_load_is_what_was_asked_for() {
    let model = Lublin99 { load: Some(0.6), ..Lublin99::new(LublinTypes::Both, 128) };
    let log = model.generate().unwrap();
    assert!((load(&log.jobs, 128).unwrap() - 0.6).abs() < 1e-4);
}

#[test]
fn what_cannot_be_generated() {
    #[track_caller]
    fn check(name: &str, value: &str, expect: &str) {
        let set = vec![(name.to_owned(), value.to_owned())];
        let options = ModelOptions { set, ..ModelOptions::default() };
        let error = Lublin99::from_options(&options).and_then(|model| model.validate()).unwrap_err();
        assert!(error.to_string().starts_with(expect), "{error}");
    }
    check("types", "some", "lublin99: types is \"some\"; it must be both, all, batch or interactive");
    check("serial", "x", "lublin99: serial is \"x\"; it must be a number");
    check("serial", "2", "lublin99: serial is 2; it must be between 0 and 1");
    check("batch.size_med", "0.5", "lublin99: size_low is 1.2; it must be between 0 and 23");
    check("queue.serial", "1", "lublin99 has no parameter \"queue.serial\"; it has types, serial, ");
    check("long_shape", "999", "lublin99: long_shape is 999; it must be such that shape times scale");
    let seed = ModelOptions { seed: Some(1 << 32), ..ModelOptions::default() };
    assert!(Lublin99::from_options(&seed).is_err());
}
