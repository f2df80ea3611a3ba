//! The presets compared with their formulas in Rust, on a job that distinguishes them.

use miserly_formula::Formula;
use miserly_formula::presets::{NAMES, PRESETS};

const WAIT: f64 = 5400.0;
const ESTIMATE: f64 = 3600.0;
const PROCS: f64 = 16.0;
const SUBMIT: f64 = 1000.0;
const USAGE_SHARE: f64 = 0.25;

#[test]
fn give_what_the_papers_say() {
    let log_estimate = libm::log10(ESTIMATE);
    for (name, expected) in [
        ("sjf", 3600.0),
        ("sqf", 16.0),
        ("saf", 57600.0),
        ("lxf", 2.5),
        ("wfp3", 54.0),
        ("unicep", 0.375),
        ("f1", log_estimate * 16.0 + 2610.0),
        ("f2", 60.0 * 16.0 + 76_800.0),
        ("f3", 57_600.0 + 20_580_000.0),
        ("f4", 14_400.0 + 1_590_000.0),
        ("fair-share", 5400.0 / 604_800.0 - 0.25),
    ] {
        let preset = PRESETS.iter().find(|preset| preset.name == name).expect(name);
        let values = [WAIT, ESTIMATE, PROCS, SUBMIT, USAGE_SHARE];
        let value = Formula::parse(preset.formula, &NAMES).unwrap().eval(&values);
        assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{name}: {value}, not {expected}");
    }
}

#[test]
fn have_names_of_their_own() {
    let mut names = PRESETS.map(|preset| preset.name);
    names.sort_unstable();
    assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
}
