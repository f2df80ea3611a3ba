//! Real logs, which are no part of the project: a folder of them in `MISERLY_TRACES`.
//!
//! Without it these tests pass and say that they were skipped, unless `MISERLY_REQUIRE_TRACES` is 1.

use std::env;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Lab, parsed, without_timing};

/// The folder of logs, if there is one.
fn folder() -> Option<PathBuf> {
    let folder = env::var_os("MISERLY_TRACES").map(PathBuf::from);
    if folder.is_none() {
        let required = env::var("MISERLY_REQUIRE_TRACES").is_ok_and(|value| value == "1");
        assert!(!required, "MISERLY_TRACES is not set, and MISERLY_REQUIRE_TRACES is 1");
        eprintln!("skipped: MISERLY_TRACES names no folder of job logs");
    }
    folder
}

/// The log in the folder whose name begins so.
fn find(name: &str) -> Option<PathBuf> {
    let found = logs(&folder()?)
        .into_iter()
        .find(|path| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name)));
    assert!(found.is_some(), "no {name} in MISERLY_TRACES");
    found
}

fn logs(folder: &PathBuf) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("MISERLY_TRACES names a folder that can be read");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut logs: Vec<PathBuf> = paths
        .filter(|path| {
            let name = path.to_string_lossy();
            name.ends_with(".swf") || name.ends_with(".swf.gz")
        })
        .collect();
    logs.sort();
    logs
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a count")
}

#[test]
fn every_line_is_accounted_for_and_every_promise_kept() {
    let Some(folder) = folder() else { return };
    let logs = logs(&folder);
    assert!(!logs.is_empty(), "no logs in MISERLY_TRACES");
    let mut command = Lab::new().command("compare --json -p fcfs -p easy -p conservative");
    let output = command.current_dir(&folder).args(&logs).output().expect("a program that starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document = parsed(&String::from_utf8_lossy(&output.stdout));
    let runs = document["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 3 * logs.len());
    for run in runs {
        let what = format!("{} {}", run["trace"]["name"], run["policy"]);
        let skipped: u64 = run["jobs"]["skipped"].as_object().expect("reasons").values().map(number).sum();
        assert_eq!(number(&run["jobs"]["read"]), number(&run["jobs"]["simulated"]) + skipped, "{what}");
        assert!(number(&run["jobs"]["simulated"]) > 0, "{what}");
        assert_eq!(number(&run["promises"]["broken"]), 0, "{what}");
        if run["policy"] == "conservative" {
            assert_eq!(run["promises"]["made"], run["jobs"]["simulated"], "{what}");
        }
    }
}

/// EASY's mean wait with the users' estimates, in both conventions for one instant.
#[track_caller]
fn check(log: &str, options: &str, jobs: u64, sequential: &str, batch: &str) {
    let Some(log) = find(log) else { return };
    for (instants, expect) in [("sequential", sequential), ("batch", batch)] {
        let run = Lab::new().document(&format!(
            "simulate {} --policy easy --instants {instants} --procs-field requested --drop runtime<=0 \
             --drop estimate<=0 --json {options}",
            log.display()
        ));
        assert_eq!(number(&run["jobs"]["simulated"]), jobs);
        let wait = run["metrics"]["wait"]["mean"].as_f64().expect("a number");
        assert_eq!(format!("{wait:.2}"), expect, "{instants}");
    }
}

#[test]
fn kth_as_published() {
    check("KTH-SP2", "", 28_481, "6836.87", "6834.59");
}

#[test]
fn ctc_as_published() {
    check("CTC-SP2", "--procs 338", 77_199, "14272.59", "13943.01");
}

#[test]
fn kth_the_same_on_any_number_of_threads() {
    let Some(log) = find("KTH-SP2") else { return };
    let compare = |threads: &str| {
        let mut command = Lab::new().command("compare --json");
        let output = command.current_dir("/").arg(&log).env("RAYON_NUM_THREADS", threads).output();
        without_timing(&String::from_utf8(output.expect("a run").stdout).expect("text")).to_string()
    };
    assert_eq!(compare("1"), compare("2"));
}
