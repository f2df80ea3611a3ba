//! A flipped byte, a file cut short: found, named, and nothing lost that is whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use miserly_live::store::{Damage, Place, Recovery, Store, StoreError};
use proptest::prelude::*;
use tempfile::TempDir;

use super::support::{Model, batch};

/// What a daemon leaves that is killed after some commits, and what it had answered.
struct Left {
    folder: TempDir,
    model: Model,
}

impl Left {
    /// Enough commits for the log to have been brought into the database once, and begun anew.
    fn after(commits: i64) -> Left {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, mut model) = (Store::open(&folder.path().join("of")).unwrap(), Model::default());
        for version in 1..=commits {
            let batch = batch(version * 37 % 61 + 1, version % 3 == 0, version);
            store.commit(&batch).unwrap();
            model.commit(&batch);
        }
        copy(&folder.path().join("of"), &folder.path().join("left"));
        Left { folder, model }
    }

    /// The state as it was left, once more.
    fn again(&self) -> TempDir {
        let again = tempfile::tempdir().unwrap();
        copy(&self.folder.path().join("left"), again.path());
        again
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.join("store")).unwrap();
    for name in ["jobs.db", "jobs.db-wal", "mark"] {
        fs::copy(from.join("store").join(name), to.join("store").join(name)).unwrap();
    }
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join("store").join(name)
}

fn flip(path: &Path, at: usize, bits: u8) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= bits;
    fs::write(path, bytes).unwrap();
}

/// Opens a state: as it is, or after its recovery.
fn open(folder: &Path) -> (Store, Option<Recovery>) {
    match Store::open(folder) {
        Ok(store) => (store, None),
        Err(StoreError::Damaged(damages)) => {
            assert!(!damages.is_empty());
            let recovery = Store::recover(folder).unwrap();
            let aside = recovery.aside.as_deref().unwrap();
            assert!(aside.join("jobs.db").exists(), "the damaged files are kept");
            (Store::open(folder).unwrap(), Some(recovery))
        }
        Err(error) => panic!("{error}"),
    }
}

/// What is not as it was: by the names that damage has.
fn differences(was: &Model, is: &Model) -> Vec<Place> {
    let job = was.jobs.iter().filter(|&(number, row)| is.jobs.get(number) != Some(row));
    let line: BTreeMap<_, _> = is.lines.iter().map(|line| (line.number, line)).collect();
    let line = was.lines.iter().filter(|was| line.get(&was.number) != Some(was));
    let meta = was.meta.iter().filter(|&(key, value)| is.meta.get(key) != Some(value));
    let job = job.map(|(number, _)| Place::Job(*number));
    let places = job.chain(line.map(|line| Place::Line(line.number)));
    places.chain(meta.map(|(key, _)| Place::Meta(key.clone()))).collect()
}

fn names(lost: &[Damage], place: &Place) -> bool {
    lost.iter().any(|damage| damage.place == *place)
}

/// One byte touches one row at most: that is named, and all else is there.
#[track_caller]
fn survives_flip(left: &Left, name: &str, at: usize, bits: u8) {
    let folder = left.again();
    flip(&file(folder.path(), name), at, bits);
    let (mut store, recovery) = open(folder.path());
    let is = Model::of(&store);
    let differences = differences(&left.model, &is);
    let lost = recovery.as_ref().map_or(&[][..], |recovery| &recovery.lost);
    let context = format!("byte {at} of {name} by {bits:#04x}: {differences:?}, {lost:?}");
    assert!(differences.len() <= 1, "{context}");
    assert!(is.jobs.len() <= left.model.jobs.len() && is.lines.len() <= left.model.lines.len(), "{context}");
    for place in &differences {
        let unknown = lost.iter().any(|damage| damage.place == Place::Structure);
        assert!(names(lost, place) || unknown, "{context}");
    }
    assert!(lost.is_empty() || !differences.is_empty(), "named and there: {context}");
    store.commit(&batch(1, false, 1)).unwrap();
    drop(store);
    Store::open(folder.path()).unwrap();
}

#[test]
fn a_flipped_byte_is_found_and_costs_the_row_that_it_is_in() {
    let left = Left::after(700);
    let size = |name| fs::metadata(file(&left.folder.path().join("left"), name)).unwrap().len();
    for name in ["jobs.db", "jobs.db-wal", "mark"] {
        let flips = (0..size(name), 0..8_u32).prop_map(|(at, bit)| (usize::try_from(at).unwrap(), 1 << bit));
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(64));
        runner
            .run(&flips, |(at, bits)| {
                survives_flip(&left, name, at, bits);
                Ok(())
            })
            .unwrap();
    }
}

/// Bytes of the structures at the head of a page or of the log.
#[test]
fn a_flipped_byte_of_a_structure_costs_nothing_or_little() {
    let left = Left::after(300);
    let folder = left.folder.path().join("left");
    for (name, step, head) in [("jobs.db", 4096, 14), ("jobs.db-wal", 24 + 4096, 70)] {
        let size = usize::try_from(fs::metadata(file(&folder, name)).unwrap().len()).unwrap();
        let pages = size / step;
        for page in [0, 2, pages - 1] {
            for at in (0..head).step_by(5).map(|at| page * step + at + page % 5).filter(|&at| at < size) {
                survives_flip(&left, name, at, 0xff);
            }
        }
    }
}

/// What a byte in the middle of a job's text does, from the first message to what is left.
#[test]
fn a_damaged_job_is_named_and_the_others_are_kept() {
    let left = Left::after(40);
    let folder = left.again();
    let log = file(folder.path(), "jobs.db-wal");
    let bytes = fs::read(&log).unwrap();
    let text = b"{\"job\":15,\"version\":35}";
    let at = bytes.windows(text.len()).rposition(|window| window == text).unwrap();
    flip(&log, at + 8, 1);
    let Err(StoreError::Damaged(damages)) = Store::open(folder.path()) else { panic!("opened") };
    assert!(damages.iter().any(|damage| matches!(damage.place, Place::Commits(_, 41))), "{damages:?}");
    let recovery = Store::recover(folder.path()).unwrap();
    assert_eq!(recovery.lost.iter().map(|lost| &lost.place).collect::<Vec<_>>(), [&Place::Job(15)]);
    let mut model = left.model;
    model.jobs.remove(&15);
    assert_eq!(Model::of(&Store::open(folder.path()).unwrap()), model);
    assert_eq!(recovery.aside, Some(folder.path().join("damaged-1")));
    let unneeded = Store::recover(folder.path()).unwrap();
    assert_eq!((unneeded.aside, unneeded.jobs, unneeded.lost), (None, model.jobs.len(), vec![]));
}

/// A log or a database that ends too early: what was answered and is gone is named by its commits or its rows.
#[test]
fn files_cut_short_are_found() {
    let left = Left::after(300);
    for name in ["jobs.db", "jobs.db-wal", "mark"] {
        let size = fs::metadata(file(&left.folder.path().join("left"), name)).unwrap().len();
        for tenth in 0..10 {
            let folder = left.again();
            let path = file(folder.path(), name);
            fs::File::options().write(true).open(&path).unwrap().set_len(size * tenth / 10).unwrap();
            let (store, recovery) = open(folder.path());
            let differences = differences(&left.model, &Model::of(&store));
            let recovery = recovery.filter(|recovery| !recovery.lost.is_empty());
            assert_eq!(recovery.is_some(), !differences.is_empty(), "{tenth} tenths of {name}");
        }
    }
}

#[test]
fn files_that_have_gone_are_found() {
    let left = Left::after(60);
    for name in ["jobs.db", "jobs.db-wal", "mark"] {
        let folder = left.again();
        fs::remove_file(file(folder.path(), name)).unwrap();
        assert!(matches!(Store::open(folder.path()), Err(StoreError::Damaged(_))), "{name}");
        Store::recover(folder.path()).unwrap();
        Store::open(folder.path()).unwrap();
    }
}
