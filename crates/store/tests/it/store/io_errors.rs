//! EIO at each write and each flush of the store: a confirmed commit is there, and a failed one is
//! there as a whole or not at all.
//!
//! `strace` lets the system calls fail. The kernel keeps what was written, as it does after a real
//! failure; the loss of unflushed pages is tested in `store/durable.rs`.

use std::path::Path;
use std::process::{Command, Stdio};

use miserly_engine::JournalBatch;
use miserly_store::{Store, StoreError};
use miserly_test_support::Requirement;

use super::faults::{FOLDER, as_child, child};
use super::support::{Model, batch};

/// The number of commits of a child.
const COMMITS: i64 = 4;

/// The number of calls of a kind, at most, of which each fails in a run of its own.
const CALLS: u32 = 60;

fn nth(version: i64) -> JournalBatch {
    let batch = batch(version, version == 2, version);
    JournalBatch { values: vec![("commits".into(), version.to_string())], ..batch }
}

/// Commits, reports each commit, and ends at the first error that leaves the outcome unknown.
fn commit(folder: &Path) {
    let Ok(mut store) = Store::open(folder) else { return println!("failed to open") };
    let mut version = 1;
    while version <= COMMITS {
        match store.commit(&nth(version)) {
            Ok(()) => {
                println!("answered {version}");
                version += 1;
            }
            // Nothing was changed: the same commit is tried again.
            Err(StoreError::Full) => println!("full"),
            Err(error) => return println!("failed: {error}"),
        }
    }
    println!("complete");
}

/// Runs a child whose `nth` call of this kind fails. Returns its output.
fn run(folder: &Path, call: &str, nth: u32) -> String {
    let test = child("io_errors::every_write_and_flush_may_fail", folder);
    let mut strace = Command::new("strace");
    let inject = format!("inject={call}:error=EIO:when={nth}");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject]);
    strace.arg(test.get_program()).args(test.get_args()).env(FOLDER, folder).stderr(Stdio::null());
    String::from_utf8_lossy(&strace.output().unwrap().stdout).into_owned()
}

/// Checks the state that a child left. Returns whether the child met an error.
fn check(folder: &Path, output: &str, when: &str) -> bool {
    let mut answered = output.lines().filter_map(|line| line.strip_prefix("answered ")?.parse::<i64>().ok());
    let answered = answered.next_back().unwrap_or(0);
    let store = Store::open(folder).unwrap_or_else(|error| panic!("{when}: {error}\n{output}"));
    let there: i64 = store.meta("commits").map_or(0, |text| text.parse().unwrap());
    assert!((answered..=answered + 1).contains(&there), "{when}: {there} of {answered}\n{output}");
    let mut model = Model::default();
    (1..=there).for_each(|version| model.commit(&batch(version, version == 2, version)));
    assert_eq!(Model::of(&store), model, "{when}");
    !output.contains("complete") || output.contains("full")
}

#[test]
fn every_write_and_flush_may_fail() {
    if let Some(folder) = as_child() {
        return commit(&folder);
    }
    let strace = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    if !Requirement::Strace
        .is_met(strace.is_ok_and(|status| status.success()), "needs a strace that may trace")
    {
        return;
    }
    // The bundled SQLite flushes by `fsync` alone.
    for (call, least) in [("fsync", 8), ("pwrite64", 20)] {
        let mut failed = 0;
        for nth in 1..=CALLS {
            let folder = tempfile::tempdir().unwrap();
            // In an old state: a new one has the errors of its creation, too.
            if nth % 2 == 0 {
                drop(Store::open(folder.path()).unwrap());
            }
            let output = run(folder.path(), call, nth);
            if check(folder.path(), &output, &format!("{call} {nth}")) {
                failed += 1;
            } else if nth > 20 {
                break;
            }
        }
        assert!(failed >= least, "only {failed} errors of {call} were noticed");
    }
}
