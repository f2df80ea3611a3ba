//! A flipped bit, a file cut short: always detected, and restored from the rest and a backup.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use miserly_engine::EndedFilter;
use miserly_store::{Backups, Damage, DamageSite, Recovery, StateCheck, Store, StoreError, verify};
use proptest::prelude::*;
use tempfile::TempDir;

use super::support::{Model, batch};

/// The state of a daemon that was killed after some commits, and the content that clients know of.
struct Left {
    folder: TempDir,
    model: Model,
    /// The content of its backup.
    backup: Model,
}

impl Left {
    /// Commits until the log was moved into the database and restarted. The backup is taken in the
    /// middle.
    fn after(commits: i64) -> Left {
        let folder = tempfile::tempdir().unwrap();
        let of = folder.path().join("of");
        let (mut store, mut model) = (Store::open(&of).unwrap(), Model::default());
        let mut backup = Model::default();
        for version in 1..=commits {
            let batch = batch(version * 37 % 61 + 1, version % 3 == 0, version);
            store.commit(&batch).unwrap();
            model.commit(&batch);
            if version == commits / 2 {
                Backups::new(&of).take(1).unwrap();
                backup = model.clone();
            }
        }
        copy(&of, &folder.path().join("left"));
        Left { folder, model, backup }
    }

    /// Returns a copy of the state.
    fn again(&self) -> TempDir {
        let again = tempfile::tempdir().unwrap();
        copy(&self.folder.path().join("left"), again.path());
        again
    }
}

fn copy(from: &Path, to: &Path) {
    for (folder, names) in [("store", &["jobs.db", "jobs.db-wal", "mark"][..]), ("backups", &["1.db"])] {
        fs::create_dir_all(to.join(folder)).unwrap();
        for name in names {
            fs::copy(from.join(folder).join(name), to.join(folder).join(name)).unwrap();
        }
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

fn recover(folder: &Path) -> Recovery {
    Store::recover(folder, |_, _| Ok(())).unwrap()
}

/// Opens a state: as it is, or after its recovery.
fn open(folder: &Path) -> (Store, Option<Recovery>) {
    match Store::open_verified(folder) {
        Ok(store) => (store, None),
        Err(StoreError::Damaged(damages)) => {
            assert!(!damages.is_empty());
            let recovery = recover(folder);
            assert!(recovery.aside.as_deref().unwrap().exists(), "the damaged files are kept");
            (Store::open(folder).unwrap(), Some(recovery))
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns the parts that differ.
fn differences(was: &Model, is: &Model) -> Vec<DamageSite> {
    let job = was.jobs.iter().filter(|&(number, row)| is.jobs.get(number) != Some(row));
    let line: BTreeMap<_, _> = is.lines.iter().map(|line| (line.number, line)).collect();
    let line = was.lines.iter().filter(|was| line.get(&was.number) != Some(was));
    let meta = was.meta.iter().filter(|&(key, value)| is.meta.get(key) != Some(value));
    let job = job.map(|(number, _)| DamageSite::Job(*number));
    let sites = job.chain(line.map(|line| DamageSite::Lines(line.number, line.number)));
    sites.chain(meta.map(|(key, _)| DamageSite::Meta(key.clone()))).collect()
}

/// Returns whether the report covers a part, by its name or by that of a larger part.
fn is_reported(recovery: &Recovery, site: &DamageSite) -> bool {
    let covers = |damage: &Damage| {
        damage.site == *site
            || matches!(damage.site, DamageSite::Structure | DamageSite::Table(_) | DamageSite::Commits(..))
    };
    let outdated = matches!(site, DamageSite::Job(number) if recovery.outdated.contains(number));
    outdated || recovery.lost.iter().any(covers)
}

/// After damage and recovery each row is as it was, or as it was at the backup or an earlier
/// commit, and reported.
#[track_caller]
fn survives_flip(left: &Left, name: &str, at: usize, bits: u8) {
    let folder = left.again();
    flip(&file(folder.path(), name), at, bits);
    let (mut store, recovery) = open(folder.path());
    let is = Model::of(&store);
    let differences = differences(&left.model, &is);
    let context = format!("byte {at} of {name} by {bits:#04x}: {differences:?}, {recovery:?}");
    // A flipped bit is never silent.
    assert!(recovery.is_some() || is == left.model, "{context}");
    assert!(is.jobs.keys().all(|number| left.model.jobs.contains_key(number)), "{context}");
    assert!(is.lines.len() <= left.model.lines.len(), "{context}");
    for site in &differences {
        assert!(recovery.as_ref().is_some_and(|recovery| is_reported(recovery, site)), "{context}");
    }
    // No job is lost that the backup has.
    assert!(left.backup.jobs.keys().all(|number| is.jobs.contains_key(number)), "{context}");
    let line = store.last_line();
    store.commit(&batch(1, false, 1)).unwrap();
    assert_eq!(store.last_line(), line + 1);
    drop(store);
    Store::open(folder.path()).unwrap();
}

#[test]
fn a_flipped_bit_is_detected_and_costs_no_more_than_is_reported() {
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
fn a_flipped_byte_of_a_structure_is_detected() {
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

/// Moves all commits into the database, so that damage of the log has no effect.
fn checkpointed(left: &Left) -> TempDir {
    let folder = left.again();
    let connection = rusqlite::Connection::open(file(folder.path(), "jobs.db")).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    folder
}

/// Flips a bit of each copy of the text. Some are remnants in free space, which are never read.
fn flip_text(path: &Path, text: &[u8]) {
    let bytes = fs::read(path).unwrap();
    let places: Vec<usize> =
        (0..bytes.len() - text.len()).filter(|at| bytes[*at..].starts_with(text)).collect();
    assert!(!places.is_empty());
    for at in places {
        flip(path, at + text.len() - 2, 1);
    }
}

#[test]
fn a_damaged_job_is_named_and_restored_from_the_backup_and_the_others_are_kept() {
    let left = Left::after(40);
    let folder = checkpointed(&left);
    // Job 38 was live in version 1, which the backup has, and in no other.
    flip_text(&file(folder.path(), "jobs.db"), b"{\"job\":38,\"version\":1}");
    let Err(StoreError::Damaged(damages)) = Store::open_verified(folder.path()) else { panic!("opened") };
    assert!(damages.iter().any(|damage| damage.site == DamageSite::Job(38)), "{damages:?}");
    assert_eq!(verify(folder.path()).unwrap(), damages);
    let recovery = recover(folder.path());
    assert_eq!((&recovery.lost[..], &recovery.outdated[..]), (&[][..], &[38][..]));
    assert_eq!(recovery.backup.as_ref().unwrap().path, folder.path().join("backups/1.db"));
    assert_eq!(recovery.aside, Some(folder.path().join("damaged-1")));
    assert_eq!(Model::of(&Store::open(folder.path()).unwrap()), left.model);
    let unneeded = recover(folder.path());
    assert_eq!((unneeded.aside, unneeded.jobs, unneeded.lost), (None, 40, vec![]));
}

#[test]
fn a_damaged_job_that_no_backup_has_is_named_as_lost() {
    let left = Left::after(40);
    let folder = checkpointed(&left);
    fs::remove_dir_all(folder.path().join("backups")).unwrap();
    flip_text(&file(folder.path(), "jobs.db"), b"{\"job\":38,\"version\":1}");
    let recovery = recover(folder.path());
    assert!(recovery.lost.iter().any(|lost| lost.site == DamageSite::Job(38)), "{recovery:?}");
    let mut model = left.model;
    model.jobs.remove(&38);
    assert_eq!(Model::of(&Store::open(folder.path()).unwrap()), model);
}

/// The row is read with its problem, and stays as it is. The others are not affected.
#[test]
fn a_single_damaged_live_job_does_not_stop_the_start() {
    let left = Left::after(40);
    let folder = checkpointed(&left);
    let database = file(folder.path(), "jobs.db");
    flip_text(&database, b"{\"job\":38,\"version\":1}");
    let problem = Some("its checksum differs".to_owned());
    for version in [50, 51] {
        let mut store = Store::open(folder.path()).unwrap();
        let live = store.live_jobs().unwrap();
        let bad: Vec<_> = live.iter().filter(|row| row.problem.is_some()).collect();
        assert!(matches!(bad[..], [row] if row.number == 38 && row.problem == problem), "{bad:?}");
        assert_eq!(store.job(38).unwrap().unwrap().problem, problem);
        store.commit(&batch(1, false, version)).unwrap();
    }
    // A second one, in its stored checksum.
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.execute("UPDATE live SET sum = sum + 1 WHERE number = 1", []).unwrap();
    drop(connection);
    assert!(matches!(Store::open(folder.path()), Err(StoreError::Damaged(_))), "two are not told apart");
}

#[test]
fn a_damaged_checksum_of_a_live_job_is_the_problem_of_that_row() {
    let left = Left::after(40);
    let folder = checkpointed(&left);
    let set = |sql: &str| {
        let connection = rusqlite::Connection::open(file(folder.path(), "jobs.db")).unwrap();
        assert_eq!(connection.execute(sql, []).unwrap(), 1);
    };
    set("UPDATE live SET sum = sum + 1 WHERE number = 38");
    let live = Store::open(folder.path()).unwrap().live_jobs().unwrap();
    assert_eq!(
        live.iter().filter(|row| row.problem.is_some()).map(|row| row.number).collect::<Vec<_>>(),
        [38]
    );
    set("DELETE FROM live WHERE number = 38");
    assert!(matches!(Store::open(folder.path()), Err(StoreError::Damaged(_))), "a missing row is not read");
}

/// Damage of the history does not stop a start. The check in the background finds it.
#[test]
fn damage_of_the_history_is_found_in_the_background() {
    let left = Left::after(40);
    let folder = checkpointed(&left);
    let connection = rusqlite::Connection::open(file(folder.path(), "jobs.db")).unwrap();
    let ended: i64 = connection.query_row("SELECT min(number) FROM ended", [], |row| row.get(0)).unwrap();
    connection.execute("UPDATE ended SET body = body || ' ' WHERE number = ?", [ended]).unwrap();
    connection.execute("UPDATE journal SET body = body || ' ' WHERE number = 3", []).unwrap();
    drop(connection);
    let store = Store::open(folder.path()).unwrap();
    let rows = store.ended_jobs(&EndedFilter::default()).unwrap();
    assert_eq!(
        rows.iter().filter(|row| row.problem.is_some()).map(|row| row.number).collect::<Vec<_>>(),
        [ended]
    );
    let check = StateCheck::start(folder.path().to_owned()).unwrap();
    while !check.is_over() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let sites: Vec<DamageSite> = check.damages().into_iter().map(|damage| damage.site).collect();
    let tables = [DamageSite::Table("ended"), DamageSite::Table("journal")];
    assert_eq!(
        sites,
        [DamageSite::Job(ended), tables[0].clone(), DamageSite::Lines(3, 3), tables[1].clone()]
    );
}

/// The log ends at a damaged frame: the database is then the state of an earlier commit, consistent
/// in itself.
#[test]
fn commits_after_a_damaged_frame_of_the_log_are_named_as_lost() {
    let left = Left::after(40);
    let folder = left.again();
    flip_text(&file(folder.path(), "jobs.db-wal"), b"{\"job\":38,\"version\":1}");
    let recovery = recover(folder.path());
    assert!(matches!(recovery.lost[..], [Damage { site: DamageSite::Commits(22, 41), .. }]), "{recovery:?}");
    // The backup is newer than that.
    assert!(recovery.backup.is_some(), "{recovery:?}");
    assert_eq!(Model::of(&Store::open(folder.path()).unwrap()), left.backup);
}

#[test]
fn files_cut_short_are_detected() {
    let left = Left::after(300);
    for name in ["jobs.db", "jobs.db-wal", "mark"] {
        let size = fs::metadata(file(&left.folder.path().join("left"), name)).unwrap().len();
        for tenth in 0..10 {
            let folder = left.again();
            let path = file(folder.path(), name);
            fs::File::options().write(true).open(&path).unwrap().set_len(size * tenth / 10).unwrap();
            let (store, recovery) = open(folder.path());
            let differences = differences(&left.model, &Model::of(&store));
            let recovery = recovery.filter(|it| !it.lost.is_empty() || !it.outdated.is_empty());
            assert_eq!(recovery.is_some(), !differences.is_empty(), "{tenth} tenths of {name}: {recovery:?}");
        }
    }
}

#[test]
fn missing_files_are_detected() {
    let left = Left::after(60);
    for name in ["jobs.db", "jobs.db-wal", "mark", ""] {
        let folder = left.again();
        let path = file(folder.path(), name);
        if name.is_empty() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        assert!(matches!(Store::open(folder.path()), Err(StoreError::Damaged(_))), "{name}");
        recover(folder.path());
        let is = Model::of(&Store::open(folder.path()).unwrap());
        assert!(left.backup.jobs.keys().all(|number| is.jobs.contains_key(number)), "{name}");
    }
}

/// A number is used once, even if only the file beside the database is left.
#[test]
fn numbers_go_on_after_the_highest_ever_given() {
    let left = Left::after(60);
    let folder = left.again();
    fs::remove_dir_all(folder.path().join("backups")).unwrap();
    fs::remove_file(file(folder.path(), "jobs.db")).unwrap();
    recover(folder.path());
    let store = Store::open(folder.path()).unwrap();
    assert_eq!((Model::of(&store).jobs.len(), store.highest_job()), (0, 61));
}

/// A power failure leaves an older file beside the database: the database alone has the highest number.
#[test]
fn a_restored_backup_gives_no_number_again_after_a_power_failure() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    store.commit(&batch(1, false, 1)).unwrap();
    let backup = Backups::new(folder.path()).take(1).unwrap().unwrap();
    let older = fs::read(file(folder.path(), "mark")).unwrap();
    store.commit(&batch(2, false, 2)).unwrap();
    let commit = store.last_commit();
    drop(store);
    fs::write(file(folder.path(), "mark"), older).unwrap();
    let lost = Store::restore(folder.path(), &backup, |_, _| Ok(())).unwrap().lost;
    assert_eq!(lost.first().map(|lost| &lost.site), Some(&DamageSite::Commits(commit, commit)));
    let store = Store::open(folder.path()).unwrap();
    assert_eq!((store.highest_job(), store.last_commit()), (2, commit + 1));
}
