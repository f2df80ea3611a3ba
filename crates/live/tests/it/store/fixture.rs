//! A state of each format, kept as it was written, which must always open.

use std::fs;
use std::path::{Path, PathBuf};

use miserly_live::store::{Batch, History, Row, Store, StoreError};

use super::support::{Model, row};

fn fixture(format: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/state-{format}"))
}

/// What is in the fixture of format 1.
fn written() -> (Model, Batch) {
    let rows: Vec<Row> = [(1, true), (2, false), (3, true), (8, false)]
        .map(|(number, ended)| row(number, ended, 1, 5000 * usize::from(number == 3) + 100))
        .into();
    let lines = vec!["{\"at\":1}".to_owned(), "{\"at\":2}".to_owned()];
    let batch = Batch { lines, rows, meta: vec![("clock".into(), "17".into())] };
    let mut model = Model::default();
    model.commit(&batch);
    (model, batch)
}

/// The fixture in a folder that may be written to.
fn copied(format: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("store")).unwrap();
    for name in ["jobs.db", "jobs.db-wal", "mark"] {
        let from = fixture(format).join("store").join(name);
        fs::copy(from, folder.path().join("store").join(name)).unwrap();
    }
    folder
}

#[test]
fn format_1_opens() {
    let folder = copied(1);
    let (model, batch) = written();
    let mut store = Store::open(folder.path()).unwrap();
    assert_eq!(Model::of(&store), model);
    store.commit(&Batch { lines: vec!["{}".into()], ..batch }).unwrap();
    assert_eq!(store.last_line(), 3);
}

#[test]
fn history_is_read_beside_a_daemon_and_without_one() {
    let folder = copied(1);
    let read = || {
        let mut numbers = Vec::new();
        let mut take = |row: Row| {
            numbers.push((row.number, row.ended));
            std::ops::ControlFlow::Continue(())
        };
        History::open(folder.path()).unwrap().jobs(&mut take).unwrap();
        numbers
    };
    let all = [(1, true), (3, true), (2, false), (8, false)];
    assert_eq!(read(), all);
    let mut store = Store::open(folder.path()).unwrap();
    store.commit(&Batch { rows: vec![row(8, true, 2, 10)], ..Batch::default() }).unwrap();
    assert_eq!(read(), [(1, true), (3, true), (8, true), (2, false)]);
}

#[test]
fn a_later_format_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    store.commit(&Batch { meta: vec![("format".into(), "1000".into())], ..Batch::default() }).unwrap();
    drop(store);
    for told in [Store::open(folder.path()).map(drop), Store::recover(folder.path()).map(drop)] {
        assert!(matches!(told, Err(StoreError::TooNew { found: 1000, .. })), "{told:?}");
    }
}

/// How the fixture was made; to make one for a new format, run it and copy the folder.
#[test]
#[ignore = "writes the fixture of the present format"]
fn write() {
    let (_, batch) = written();
    let folder = fixture(1);
    let mut store = Store::open(&folder).unwrap();
    store.commit(&batch).unwrap();
}
