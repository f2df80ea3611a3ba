//! A daemon that is killed, a disk that is full, a second daemon, a state of an earlier version.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use miserly_engine::JournalBatch;
use miserly_store::{Store, StoreError};
use miserly_test_support::Requirement;

use super::support::{Model, batch, row};

/// The variable with the folder of a child of these tests. It is unset in other processes.
pub(super) const FOLDER: &str = "MISERLY_TEST_STORE";

/// Returns this test program, as a child that runs one test.
pub(super) fn child(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([&format!("store::{test}"), "--exact", "--nocapture"]).env(FOLDER, folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

/// Returns the child's folder, in the child.
pub(super) fn as_child() -> Option<std::path::PathBuf> {
    std::env::var_os(FOLDER).map(Into::into)
}

/// Returns the commit with a number, the same in every process.
fn nth(version: i64) -> JournalBatch {
    batch(version * 37 % 61 + 1, version % 3 == 0, version)
}

/// Commits for ever from the last commit on, and prints the number of each.
fn commit_on(folder: &Path) {
    let mut store = Store::open(folder).unwrap();
    let mut version = store.meta("commits").map_or(0, |text| text.parse().unwrap());
    loop {
        version += 1;
        let mut batch = nth(version);
        batch.values.push(("commits".into(), version.to_string()));
        store.commit(&batch).unwrap();
        let mut output = std::io::stdout().lock();
        writeln!(output, "answered {version}").and_then(|()| output.flush()).unwrap();
    }
}

/// Returns the last commit that a child reported before it was killed.
fn answered(mut child: Child, after: Duration) -> i64 {
    let output = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        lines.filter_map(|line| line.strip_prefix("answered ")?.parse().ok()).last()
    });
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap().unwrap_or(0)
}

#[test]
fn what_was_answered_survives_a_kill() {
    if let Some(folder) = as_child() {
        commit_on(&folder);
    }
    let folder = tempfile::tempdir().unwrap();
    let (mut model, mut known) = (Model::default(), 0);
    for round in 0..40_u64 {
        let child = child("faults::what_was_answered_survives_a_kill", folder.path()).spawn().unwrap();
        let answered = answered(child, Duration::from_micros(15_000 + round * 7919 % 60_000));
        let store = Store::open(folder.path()).unwrap();
        let there: i64 = store.meta("commits").map_or(0, |text| text.parse().unwrap());
        // The last commit may be there without its report.
        assert!((answered.max(known)..=answered.max(known) + 1).contains(&there), "{there} of {answered}");
        (known + 1..=there).for_each(|version| model.commit(&nth(version)));
        known = there;
        assert_eq!(Model::of(&store), model, "round {round}");
    }
    assert!(known > 100, "{known} commits: nothing was tried");
}

#[test]
fn a_second_daemon_is_told_who_has_the_state() {
    if let Some(folder) = as_child() {
        let _store = Store::open(&folder).unwrap();
        println!("open");
        std::thread::sleep(Duration::from_mins(1));
    }
    let folder = tempfile::tempdir().unwrap();
    let mut child =
        child("faults::a_second_daemon_is_told_who_has_the_state", folder.path()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("open")));
    let pid = i32::try_from(child.id()).unwrap();
    for result in
        [Store::open(folder.path()).map(drop), Store::recover(folder.path(), |_, _| Ok(())).map(drop)]
    {
        let Err(StoreError::Locked { pid: result, .. }) = result else { panic!("{result:?}") };
        assert_eq!(result, Some(pid));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    Store::open(folder.path()).unwrap();
}

/// Commits until the disk is full. Then checks that all content is there, and that commits continue
/// when there is space.
fn fill(disk: &Path) {
    let ballast = disk.join("ballast");
    std::fs::write(&ballast, vec![1; 300_000]).unwrap();
    let (mut store, mut model) = (Store::open(&disk.join("state")).unwrap(), Model::default());
    let mut full = 0;
    for version in 1..2000 {
        let batch = JournalBatch { rows: vec![row(version, false, version, 5000)], ..nth(version) };
        match store.commit(&batch) {
            Ok(()) => model.commit(&batch),
            Err(StoreError::Full) => full += 1,
            Err(error) => panic!("{error}"),
        }
        assert_eq!(store.last_line(), model.lines.last().map_or(0, |line| line.number));
        if full == 3 {
            break;
        }
    }
    assert_eq!(full, 3, "the disk was never full");
    assert_eq!(Model::of(&store), model);
    drop(store);
    std::fs::remove_file(&ballast).unwrap();
    let mut store = Store::open(&disk.join("state")).unwrap();
    assert_eq!(Model::of(&store), model);
    let batch = nth(5);
    store.commit(&batch).unwrap();
    model.commit(&batch);
    assert_eq!(Model::of(&store), model);
    println!("survived");
}

#[test]
fn a_full_disk_costs_nothing_that_was_answered() {
    if let Some(disk) = as_child() {
        return fill(&disk);
    }
    let disk = tempfile::tempdir().unwrap();
    let test = child("faults::a_full_disk_costs_nothing_that_was_answered", disk.path());
    let script = "mount -t tmpfs -o size=4m,mode=700 none \"$0\" && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(disk.path());
    command.arg(test.get_program()).args(test.get_args()).env(FOLDER, disk.path());
    match command.output() {
        Ok(output) if output.status.success() => {
            assert!(String::from_utf8_lossy(&output.stdout).contains("survived"));
        }
        // The child ran and failed: this is its output.
        Ok(output) if String::from_utf8_lossy(&output.stdout).contains("running 1 test") => {
            panic!("{}", String::from_utf8_lossy(&output.stdout));
        }
        other => {
            let missing = format!("needs a user namespace with a small file system ({other:?})");
            Requirement::Namespaces.is_met(false, &missing);
        }
    }
}
