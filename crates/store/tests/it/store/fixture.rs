//! A state of each format, as it was written. It must always open.

use std::fs;
use std::path::{Path, PathBuf};

use miserly_engine::{JobRow, JournalBatch};
use miserly_store::{History, Store, StoreError};

use super::fixture_content::{checkpoint, fixture};
use super::support::{Model, row};

fn folder_of(format: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/state-{format}"))
}

/// Returns the content of the fixture of format 1.
fn written() -> (Model, JournalBatch) {
    let (mut model, batch) = (Model::default(), fixture());
    model.commit(&batch);
    (model, batch)
}

/// Returns a copy of the fixture in a writable folder.
fn copied(format: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("store")).unwrap();
    for name in ["jobs.db", "jobs.db-wal", "mark"] {
        let name = Path::new("store").join(name);
        fs::copy(folder_of(format).join(&name), folder.path().join(&name)).unwrap();
    }
    folder
}

#[test]
fn each_format_opens() {
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].into_iter().for_each(opens);
}

fn opens(format: u32) {
    let folder = copied(format);
    let (mut model, batch) = written();
    if format > 2 {
        model.commit(&checkpoint());
    }
    let mut store = Store::open(folder.path()).unwrap();
    assert_eq!(Model::of(&store), model);
    assert_eq!(store.segments().count(), usize::from(format > 2));
    store.commit(&JournalBatch { lines: vec!["{}".into()], ..batch }).unwrap();
    assert_eq!(store.last_line(), model.last + 1);
    assert_eq!(store.meta("format"), Some("11"), "an older program must not write to it");
}

#[test]
fn history_is_read_beside_a_daemon_and_without_one() {
    let folder = copied(1);
    let read = || {
        let mut numbers = Vec::new();
        let mut take = |row: JobRow| {
            numbers.push((row.number, row.ended));
            std::ops::ControlFlow::Continue(())
        };
        History::open(folder.path()).unwrap().jobs(&mut take).unwrap();
        numbers
    };
    let all = [(1, true), (3, true), (2, false), (8, false)];
    assert_eq!(read(), all);
    let mut store = Store::open(folder.path()).unwrap();
    store.commit(&JournalBatch { rows: vec![row(8, true, 2, 10)], ..JournalBatch::default() }).unwrap();
    assert_eq!(read(), [(1, true), (3, true), (8, true), (2, false)]);
}

#[test]
fn a_later_format_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    store
        .commit(&JournalBatch { values: vec![("format".into(), "1000".into())], ..JournalBatch::default() })
        .unwrap();
    drop(store);
    for result in
        [Store::open(folder.path()).map(drop), Store::recover(folder.path(), |_, _| Ok(())).map(drop)]
    {
        assert!(matches!(result, Err(StoreError::TooNew { found: 1000, .. })), "{result:?}");
        let version = concat!("made by version ", env!("CARGO_PKG_VERSION"));
        assert!(result.unwrap_err().to_string().contains(version));
    }
}

#[test]
fn the_backup_of_format_1_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("backups")).unwrap();
    fs::copy(folder_of(1).join("backups/1.db"), folder.path().join("backups/1.db")).unwrap();
    let recovery = Store::recover(folder.path(), |_, _| Ok(())).unwrap();
    assert!(recovery.backup.is_some());
    assert_eq!(Model::of(&Store::open(folder.path()).unwrap()), written().0);
}
