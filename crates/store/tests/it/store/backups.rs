//! Backups: their content, their rotation, and their interruption.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use miserly_engine::JournalBatch;
use miserly_store::{Backups, ENDED, Store, StoreError, ended_folders};

use super::faults::{FOLDER, as_child, child};
use super::support::{Model, batch, row};

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("backups")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Returns the content that a recovery from the backups alone has.
fn restored(folder: &Path) -> (Model, PathBuf) {
    let elsewhere = tempfile::tempdir().unwrap();
    let backups = elsewhere.path().join("backups");
    fs::create_dir(&backups).unwrap();
    for name in names(folder).into_iter().filter(|name| name.strip_suffix(".db").is_some()) {
        fs::copy(folder.join("backups").join(&name), backups.join(name)).unwrap();
    }
    let recovery = Store::recover(elsewhere.path(), |_, _| Ok(())).unwrap();
    let used = recovery.backup.unwrap().path.file_name().unwrap().into();
    (Model::of(&Store::open(elsewhere.path()).unwrap()), used)
}

#[test]
fn a_backup_has_what_was_committed_and_the_newest_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, mut model) = (Store::open(folder.path()).unwrap(), Model::default());
    let mut backups = Backups::new(folder.path());
    for version in 1..=5 {
        let batch = batch(version, version % 2 == 0, version);
        store.commit(&batch).unwrap();
        model.commit(&batch);
        let path = backups.take(3).unwrap().expect("something was committed");
        assert_eq!(path, folder.path().join(format!("backups/{version}.db")));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(backups.take(3).unwrap(), None, "nothing was committed since");
        assert_eq!(restored(folder.path()), (model.clone(), format!("{version}.db").into()));
    }
    assert_eq!(names(folder.path()), ["3.db", "4.db", "5.db"]);
}

#[test]
fn a_damaged_backup_is_passed_over_for_the_next_older_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let (mut backups, mut models) = (Backups::new(folder.path()), vec![Model::default()]);
    for version in 1..=3 {
        let mut model = models.last().unwrap().clone();
        store.commit(&batch(version, false, version)).unwrap();
        model.commit(&batch(version, false, version));
        models.push(model);
        backups.take(3).unwrap();
    }
    for (number, expect) in [(3, 2), (2, 1)] {
        let path = folder.path().join(format!("backups/{number}.db"));
        let mut bytes = fs::read(&path).unwrap();
        let text = format!("\"version\":{number}").into_bytes();
        let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
        bytes[at + 2] ^= 4;
        fs::write(&path, bytes).unwrap();
        assert_eq!(restored(folder.path()), (models[expect].clone(), format!("{expect}.db").into()));
    }
}

/// The records of attempts stay as long as a backup may lack their ends.
#[test]
fn records_of_ended_attempts_are_kept_until_all_backups_contain_their_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let mut backups = Backups::new(folder.path());
    let mut round = |number: i64| {
        fs::create_dir_all(folder.path().join(ENDED).join(format!("{number}.1"))).unwrap();
        store.commit(&batch(number, true, number)).unwrap();
        backups.take(2).unwrap();
        let homes = ended_folders(folder.path()).unwrap();
        let kept = homes.iter().flat_map(|home| fs::read_dir(home).unwrap());
        let mut kept: Vec<_> = kept.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        kept.sort();
        kept
    };
    assert!(round(1).is_empty(), "the only backup contains it");
    assert_eq!(round(2), ["2.1"], "the first backup may not contain it");
    assert_eq!(round(3), ["3.1"]);
}

#[test]
fn another_version_of_the_program_takes_a_backup_before_it_writes() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    store
        .commit(&JournalBatch { values: vec![("version".into(), "0.0.0".into())], ..batch(1, false, 1) })
        .unwrap();
    let before = Model::of(&store);
    drop(store);
    assert!(!folder.path().join("backups").exists());
    drop(Store::open(folder.path()).unwrap());
    assert_eq!(restored(folder.path()).0, before);
    drop(Store::open(folder.path()).unwrap());
    assert_eq!(names(folder.path()), ["1.db"], "the same version takes none");
}

/// Commits and takes backups until it is killed.
fn back_up_on(folder: &Path) {
    let mut store = Store::open(folder).unwrap();
    let mut backups = Backups::new(folder);
    for version in store.last_line() + 1.. {
        store
            .commit(&JournalBatch { rows: vec![row(version % 97, false, version, 9000)], ..line() })
            .unwrap();
        backups.take(2).unwrap();
        println!("backup");
    }
}

fn line() -> JournalBatch {
    JournalBatch { lines: vec!["{}".into()], ..JournalBatch::default() }
}

#[test]
fn a_kill_during_a_backup_leaves_whole_backups_only() {
    if let Some(folder) = as_child() {
        back_up_on(&folder);
    }
    let folder = tempfile::tempdir().unwrap();
    let mut interrupted = 0;
    for round in 0..15_u64 {
        let mut child = child("backups::a_kill_during_a_backup_leaves_whole_backups_only", folder.path())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("backup")), "it takes none");
        std::thread::sleep(Duration::from_micros(round * 7919 % 50_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let left = names(folder.path());
        interrupted += usize::from(left.iter().any(|name| name == "making.db"));
        let (model, used) = restored(folder.path());
        let newest = left.iter().filter_map(|name| name.strip_suffix(".db")?.parse::<u64>().ok()).max();
        assert_eq!(used, PathBuf::from(format!("{}.db", newest.unwrap())), "the newest is whole");
        assert!(model.lines.len() <= Model::of(&store).lines.len());
        drop(store);
        Backups::new(folder.path()).take(2).unwrap();
        assert!(!names(folder.path()).iter().any(|name| name == "making.db"), "what was left is gone");
    }
    assert!(interrupted > 0, "no backup was interrupted");
}

/// The system rejects large files. Commits continue, and the earlier backups remain.
#[test]
fn a_backup_that_finds_no_room_changes_nothing() {
    if let Some(folder) = as_child() {
        let mut store = Store::open(&folder).unwrap();
        let taken = Backups::new(&folder).take(1);
        assert!(matches!(taken, Err(StoreError::Full)), "{taken:?}");
        store.commit(&line()).unwrap();
        println!("went on");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    store.commit(&batch(1, false, 1)).unwrap();
    Backups::new(folder.path()).take(1).unwrap();
    let before = restored(folder.path());
    let many = (1..200).map(|number| row(number, true, 1, 3000)).collect();
    store.commit(&JournalBatch { rows: many, ..JournalBatch::default() }).unwrap();
    drop(store);
    // The log is empty: the next commits write little.
    let connection = rusqlite::Connection::open(folder.path().join("store/jobs.db")).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let test = child("backups::a_backup_that_finds_no_room_changes_nothing", folder.path());
    let mut command = std::process::Command::new("sh");
    // In units of 512 bytes: less than the backup, more than the present files.
    command.args(["-c", "trap '' XFSZ; ulimit -f 600; exec \"$@\"", "sh"]).arg(test.get_program());
    let output = command.args(test.get_args()).env(FOLDER, folder.path()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("went on"), "{printed}");
    assert_eq!(names(folder.path()), ["1.db"], "what was begun is gone");
    assert_eq!(restored(folder.path()), before);
}
