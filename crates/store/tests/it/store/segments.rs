//! Segments of the journal: damage of one does not stop a daemon, and costs no other.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use miserly_engine::{Checkpoint, JournalBatch};
use miserly_store::{Backups, Damage, DamageSite, Recovery, Segment, Store, StoreError};
use tempfile::TempDir;

use super::support::{journal, row};

/// The number of lines of each segment but the first: a checkpoint and the lines after it.
const LINES: i64 = 101;

fn wall(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap()
}

/// Returns a state of three sealed segments and an open one.
fn sealed() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    for nth in 1..=4 {
        let lines = (1..LINES).map(|line| format!("{{\"segment\":{nth},\"line\":{line}}}")).collect();
        let checkpoint =
            (nth < 4).then(|| Checkpoint { line: format!("checkpoint {nth}"), wall: wall(nth * 10) });
        let rows = vec![row(nth, true, 1, 100)];
        store.commit(&JournalBatch { lines, checkpoint, rows, values: vec![] }).unwrap();
    }
    drop(store);
    // Moves the log into the database.
    drop(Store::open(folder.path()).unwrap());
    folder
}

fn bounds(store: &Store) -> Vec<(i64, i64, i64)> {
    store
        .segments()
        .map(|Segment { first, last, sealed, .. }| (first, last, sealed.as_microsecond()))
        .collect()
}

/// Flips a bit of each copy of a line.
fn damage(folder: &Path, segment: i64, line: i64) {
    let path = folder.join("store/jobs.db");
    let mut bytes = fs::read(&path).unwrap();
    let text = format!("{{\"segment\":{segment},\"line\":{line}}}").into_bytes();
    let places: Vec<usize> =
        (0..bytes.len() - text.len()).filter(|at| bytes[*at..].starts_with(&text)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at + 2] ^= 1;
    }
    fs::write(path, bytes).unwrap();
}

fn sites(damages: &[Damage]) -> Vec<DamageSite> {
    damages.iter().map(|damage| damage.site.clone()).collect()
}

fn recover(folder: &Path) -> Recovery {
    Store::recover(folder, |_, _| Ok(())).unwrap()
}

#[test]
fn a_segment_ends_before_a_checkpoint() {
    let folder = sealed();
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(bounds(&store), [(1, 100, 10), (101, 201, 20), (202, 302, 30)]);
    assert_eq!(journal(&store, 202)[0].body, "checkpoint 2");
    assert_eq!(store.last_line(), 403);
}

#[test]
fn old_segments_are_removed_as_a_whole() {
    let folder = sealed();
    let mut store = Store::open(folder.path()).unwrap();
    assert!(!store.forget_segment(wall(10)).unwrap(), "sealed at 10, not before");
    assert!(store.forget_segment(wall(25)).unwrap());
    assert!(!store.forget_segment(wall(25)).unwrap());
    for _ in 0..2 {
        assert_eq!(bounds(&store), [(202, 302, 30)]);
        assert_eq!(journal(&store, 1).first().map(|line| line.number), Some(202));
        drop(store);
        store = Store::open(folder.path()).unwrap();
    }
    Backups::new(folder.path()).take(1).unwrap();
}

#[test]
fn a_damaged_sealed_segment_stops_no_daemon_and_is_found_by_a_backup() {
    let folder = sealed();
    damage(folder.path(), 2, 7);
    drop(Store::open(folder.path()).unwrap());
    let Err(StoreError::Damaged(damages)) = Backups::new(folder.path()).take(1) else { panic!("taken") };
    assert!(sites(&damages).contains(&DamageSite::Lines(108, 108)), "{damages:?}");
    assert!(sites(&damages).contains(&DamageSite::Segment(101, 201)), "{damages:?}");
    // With the segment the damage is gone.
    let mut store = Store::open(folder.path()).unwrap();
    while store.forget_segment(wall(25)).unwrap() {}
    Backups::new(folder.path()).take(1).unwrap();
}

#[test]
fn a_damaged_open_segment_stops_no_daemon_and_is_found_by_a_check() {
    let folder = sealed();
    damage(folder.path(), 4, 7);
    drop(Store::open(folder.path()).unwrap());
    let Err(StoreError::Damaged(damages)) = Store::open_verified(folder.path()) else { panic!("opened") };
    assert_eq!(sites(&damages), [DamageSite::Lines(310, 310), DamageSite::Table("journal")], "{damages:?}");
}

#[test]
fn a_recovery_keeps_the_other_segments_and_names_the_damaged_one() {
    let folder = sealed();
    damage(folder.path(), 2, 7);
    damage(folder.path(), 2, 8);
    let recovery = recover(folder.path());
    assert!(sites(&recovery.lost).contains(&DamageSite::Segment(101, 201)), "{recovery:?}");
    let problem = recovery.lost.iter().find(|lost| matches!(lost.site, DamageSite::Segment(..)));
    assert_eq!(problem.unwrap().problem, "99 of 101 lines are left");
    assert_eq!(recovery.lost.len(), 4, "two lines, their segment and its table: {recovery:?}");
    let mut store = Store::open(folder.path()).unwrap();
    assert_eq!(bounds(&store), [(1, 100, 10), (101, 201, 20), (202, 302, 30)]);
    assert_eq!(journal(&store, 1).len(), 401);
    // It is whole again in itself.
    Backups::new(folder.path()).take(1).unwrap();
    while store.forget_segment(Timestamp::MAX).unwrap() {}
    assert_eq!((bounds(&store).len(), journal(&store, 1).len()), (0, 101));
}

#[test]
fn a_damaged_segment_comes_back_from_a_backup() {
    let folder = sealed();
    Backups::new(folder.path()).take(1).unwrap();
    damage(folder.path(), 1, 9);
    let recovery = recover(folder.path());
    assert_eq!(recovery.lost, []);
    let store = Store::open(folder.path()).unwrap();
    assert_eq!((bounds(&store).len(), journal(&store, 1).len()), (3, 403));
}

/// The record of a segment is lost: its lines get another one.
#[test]
fn a_segment_without_its_record_is_sealed_again() {
    for (first, left) in [
        (1, [(1, 100, 20), (101, 201, 20)]),
        (101, [(1, 100, 10), (101, 201, 30)]),
        (202, [(1, 100, 10), (101, 201, 20)]),
    ] {
        let folder = sealed();
        let connection = rusqlite::Connection::open(folder.path().join("store/jobs.db")).unwrap();
        let key = format!("segment/{first:019}");
        assert_eq!(connection.execute("UPDATE meta SET sum = sum + 1 WHERE key = ?", [key]).unwrap(), 1);
        drop(connection);
        assert!(matches!(Store::open(folder.path()), Err(StoreError::Damaged(_))), "{first}");
        recover(folder.path());
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(bounds(&store)[..2], left, "{first}");
        assert_eq!(journal(&store, 1).len(), 403);
        drop(store);
        Backups::new(folder.path()).take(1).unwrap();
    }
}
