//! The stored state of the driver: a database of one file.

mod format_1;

use std::collections::BTreeMap;
use std::fs::TryLockError;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use miserly_core::Time;
use miserly_saved::{SavedEntry, SavedLedgerState};
use rusqlite::{Connection, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

use self::format_1::OldRow;
use crate::DriveError;
use crate::comment::CommentField;
use crate::notes::StartRecord;
use crate::scheduler::{DrivenJob, Stored, StoredJob};

/// The format that this version writes.
const FORMAT: u32 = 2;

/// The file that ends a driver.
const HANDED_BACK: &str = "handed-back";

/// The file of the database.
const DATABASE: &str = "drive.db";

/// The file that a driver has locked as long as it lives.
const LOCK: &str = "lock";

/// The time for which a new driver waits for that, in tenths of a second.
const LOCKED_WITHIN: u32 = 50;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS jobs (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS starts (number INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
";

/// The database in a folder, which one driver has at a time.
pub(crate) struct Store {
    connection: Connection,
    path: PathBuf,
    /// The file that ends the driver.
    handed_back: PathBuf,
    /// The jobs as they are stored.
    jobs: BTreeMap<String, StoredJob>,
    /// Whether these are of an earlier format.
    is_outdated: bool,
    /// Held as long as the driver lives.
    _lock: std::fs::File,
}

/// A job as it is stored.
#[derive(Deserialize, Serialize)]
struct JobRow {
    job: DrivenJob,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<SavedEntry>,
}

/// All but the jobs.
#[derive(Default, Deserialize, Serialize)]
struct Head {
    format: u32,
    #[serde(alias = "numbers")]
    last_number: i64,
    #[serde(default, alias = "last", with = "miserly_saved::ticks::optional")]
    last_step: Option<Time>,
    nodes: Vec<String>,
    #[serde(default)]
    groups: Vec<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reservation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comments: Option<CommentField>,
    state: SavedLedgerState,
}

impl Store {
    /// Opens the database of a folder, or creates it.
    pub(crate) fn open(folder: &Path) -> Result<(Store, Stored), DriveError> {
        let failed = |error: std::io::Error| DriveError::Folder { folder: folder.to_owned(), error };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let lock = std::fs::File::create(folder.join(LOCK)).map_err(failed)?;
        // The nodes of a driver that was gone may just be handed back.
        if !is_locked_within(&lock, LOCKED_WITHIN) {
            return Err(DriveError::InUse { folder: folder.to_owned() });
        }
        let path = folder.join(DATABASE);
        let connection = connect(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let (stored, format) = load(&connection, &path)?;
        let handed_back = folder.join(HANDED_BACK);
        match std::fs::remove_file(&handed_back) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let (jobs, is_outdated) = (stored.jobs.clone(), format < FORMAT);
        Ok((Store { connection, path, handed_back, jobs, is_outdated, _lock: lock }, stored))
    }

    /// Returns whether a folder has a state.
    pub(crate) fn is_in(folder: &Path) -> Result<bool, DriveError> {
        let failed = |error| DriveError::Folder { folder: folder.to_owned(), error };
        folder.join(DATABASE).try_exists().map_err(failed)
    }

    /// Returns whether the nodes were handed back since the driver began.
    pub(crate) fn is_handed_back(&self) -> bool {
        self.handed_back.exists()
    }

    /// Stores the state and the starts. It is on the disk when this returns.
    pub(crate) fn commit(&mut self, stored: Stored, starts: &[StartRecord]) -> Result<(), DriveError> {
        let failed = |error| DriveError::Database { path: self.path.clone(), error };
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        if self.is_outdated {
            transaction.execute("DELETE FROM jobs", []).map_err(failed)?;
            self.jobs.clear();
        }
        write_jobs(&transaction, &self.jobs, &stored.jobs).map_err(|error| error.at(&self.path))?;
        for record in starts {
            let sql = "INSERT INTO starts (body) VALUES (?)";
            transaction.execute(sql, params![text(record)?]).map_err(failed)?;
        }
        let sql = "INSERT OR REPLACE INTO meta (key, body) VALUES ('head', ?)";
        transaction.execute(sql, params![text(&Head::new(&stored))?]).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        self.jobs = stored.jobs;
        self.is_outdated = false;
        Ok(())
    }
}

impl Head {
    fn new(stored: &Stored) -> Head {
        Head {
            format: FORMAT,
            last_number: stored.last_number,
            last_step: stored.last_step,
            nodes: stored.nodes.clone(),
            groups: stored.groups.clone(),
            policy: stored.policy.clone(),
            reservation: stored.reservation.clone(),
            comments: stored.comments,
            state: SavedLedgerState::new(&stored.state),
        }
    }
}

/// Why jobs cannot be written.
enum WriteError {
    Database(rusqlite::Error),
    Text(DriveError),
}

impl WriteError {
    fn at(self, path: &Path) -> DriveError {
        match self {
            WriteError::Database(error) => DriveError::Database { path: path.to_owned(), error },
            WriteError::Text(error) => error,
        }
    }
}

/// Writes the jobs that have changed, and removes those that are gone.
fn write_jobs(
    transaction: &rusqlite::Transaction<'_>,
    before: &BTreeMap<String, StoredJob>,
    jobs: &BTreeMap<String, StoredJob>,
) -> Result<(), WriteError> {
    let sql = "INSERT OR REPLACE INTO jobs (id, body) VALUES (?, ?)";
    let mut put = transaction.prepare_cached(sql).map_err(WriteError::Database)?;
    for (id, job) in jobs.iter().filter(|(id, job)| before.get(*id) != Some(job)) {
        let row = JobRow { job: job.job.clone(), entry: job.entry.as_ref().map(SavedEntry::new) };
        let body = text(&row).map_err(WriteError::Text)?;
        put.execute(params![id, body]).map_err(WriteError::Database)?;
    }
    let sql = "DELETE FROM jobs WHERE id = ?";
    let mut remove = transaction.prepare_cached(sql).map_err(WriteError::Database)?;
    for id in before.keys().filter(|id| !jobs.contains_key(*id)) {
        remove.execute(params![id]).map_err(WriteError::Database)?;
    }
    Ok(())
}

/// Ends the driver of a folder at its next step, and waits for that, but not for longer than some seconds. Returns the state, and
/// whether the driver has ended.
pub(crate) fn hand_back(folder: &Path) -> Result<(Stored, bool), DriveError> {
    let failed = |error: std::io::Error| DriveError::Folder { folder: folder.to_owned(), error };
    // A folder without a state is none.
    read(folder)?;
    std::fs::write(folder.join(HANDED_BACK), "").map_err(failed)?;
    let lock = std::fs::File::open(folder.join(LOCK)).map_err(failed)?;
    let has_ended = is_locked_within(&lock, 2 * LOCKED_WITHIN);
    Ok((read(folder)?.0, has_ended))
}

/// Locks the folder of a driver that is gone. Returns `None` if there is a driver, or never was one.
pub(crate) fn lock_unused(folder: &Path) -> Result<Option<std::fs::File>, DriveError> {
    let failed = |error: std::io::Error| DriveError::Folder { folder: folder.to_owned(), error };
    if !Store::is_in(folder)? {
        return Ok(None);
    }
    let lock = std::fs::File::open(folder.join(LOCK)).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Returns whether a file can be locked within this time, in tenths of a second. It is locked then.
fn is_locked_within(file: &std::fs::File, tenths: u32) -> bool {
    (0..tenths).any(|_| {
        let is_locked = file.try_lock().is_ok();
        if !is_locked {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        is_locked
    })
}

/// Returns the state of a folder, and the recorded starts from the last ones on, for reading only.
pub(crate) fn read(folder: &Path) -> Result<(Stored, Vec<StartRecord>), DriveError> {
    let path = folder.join(DATABASE);
    if !Store::is_in(folder)? {
        return Err(DriveError::NoState { folder: folder.to_owned() });
    }
    let failed = |error| DriveError::Database { path: path.clone(), error };
    let connection = connect(&path)?;
    let (stored, _) = load(&connection, &path)?;
    let mut statement = connection.prepare("SELECT body FROM starts ORDER BY number").map_err(failed)?;
    let bodies = statement.query_map([], |row| row.get::<_, String>(0)).map_err(failed)?;
    let mut starts = vec![];
    for body in bodies {
        starts.push(parse(&body.map_err(failed)?)?);
    }
    Ok((stored, starts))
}

fn connect(path: &Path) -> Result<Connection, DriveError> {
    let failed = |error| DriveError::Database { path: path.to_owned(), error };
    let connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(std::time::Duration::from_secs(10)).map_err(failed)?;
    connection.pragma_update(None, "journal_mode", "wal").map_err(failed)?;
    connection.pragma_update(None, "synchronous", "full").map_err(failed)?;
    connection.execute_batch(TABLES).map_err(failed)?;
    Ok(connection)
}

/// Reads the state, and its format.
fn load(connection: &Connection, path: &Path) -> Result<(Stored, u32), DriveError> {
    let failed = |error| DriveError::Database { path: path.to_owned(), error };
    let mut statement = connection.prepare("SELECT body FROM meta WHERE key = 'head'").map_err(failed)?;
    let mut heads = statement.query_map([], |row| row.get::<_, String>(0)).map_err(failed)?;
    let head: Head = match heads.next() {
        Some(body) => parse(&body.map_err(failed)?)?,
        None => Head { format: FORMAT, ..Head::default() },
    };
    if head.format > FORMAT {
        return Err(DriveError::Format { path: path.to_owned(), format: head.format });
    }
    let mut statement = connection.prepare("SELECT id, body FROM jobs").map_err(failed)?;
    let stored = statement
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))
        .map_err(failed)?;
    let mut jobs = BTreeMap::new();
    for row in stored {
        let (id, body) = row.map_err(failed)?;
        let JobRow { job, entry } =
            if head.format == 1 { parse::<OldRow>(&body)?.into() } else { parse(&body)? };
        jobs.insert(id, StoredJob { job, entry: entry.map(|entry| entry.entry()) });
    }
    let format = head.format;
    let stored = Stored {
        last_number: head.last_number,
        last_step: head.last_step,
        nodes: head.nodes,
        groups: head.groups,
        policy: head.policy,
        reservation: head.reservation,
        comments: head.comments,
        state: head.state.state(),
        jobs,
    };
    Ok((stored, format))
}

fn text(value: &impl Serialize) -> Result<String, DriveError> {
    serde_json::to_string(value).map_err(|error| DriveError::Damaged(error.to_string()))
}

fn parse<T: for<'a> Deserialize<'a>>(body: &str) -> Result<T, DriveError> {
    serde_json::from_str(body).map_err(|error| DriveError::Damaged(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_unused_while_its_driver_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let is_unused = || lock_unused(path).unwrap().is_some();
        assert!(!is_unused(), "there never was a driver");
        let (store, _) = Store::open(path).unwrap();
        assert!(!is_unused());
        drop(store);
        assert!(is_unused());
        // A driver that starts meanwhile waits.
        let lock = lock_unused(path).unwrap().unwrap();
        let held = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(200));
            drop(lock);
        });
        assert!(Store::open(path).is_ok());
        held.join().unwrap();
    }

    /// Each kind of state that format 1 could have.
    #[test]
    fn a_state_of_format_1_is_read_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        drop(Store::open(path).unwrap());
        let fixture: serde_json::Value = serde_json::from_str(include_str!("state-1.json")).unwrap();
        let connection = connect(&path.join(DATABASE)).unwrap();
        let head = fixture["head"].to_string();
        connection.execute("INSERT INTO meta (key, body) VALUES ('head', ?)", [head]).unwrap();
        for (id, body) in fixture["jobs"].as_object().unwrap() {
            let sql = "INSERT INTO jobs (id, body) VALUES (?, ?)";
            connection.execute(sql, params![id, body.to_string()]).unwrap();
        }
        drop(connection);
        let (mut store, stored) = Store::open(path).unwrap();
        let states = |stored: &Stored| {
            let state = |(id, stored): (&String, &StoredJob)| {
                (id.clone(), serde_json::to_value(stored.job.state()).unwrap())
            };
            stored.jobs.iter().map(state).collect::<serde_json::Map<_, _>>()
        };
        let read = states(&stored);
        assert_eq!(serde_json::Value::from(read.clone()), fixture["states"]);
        let running = &stored.jobs["running"].job;
        let promise = running.promise.as_ref().unwrap();
        assert_eq!((promise.first.ticks(), promise.latest.ticks()), (71_000_000, 90_500_000));
        assert_eq!(promise.broken.as_deref(), Some("a job runs past its limit"));
        assert!(stored.jobs["running"].entry.is_some());
        // The next format has it all.
        store.commit(stored.clone(), &[]).unwrap();
        drop(store);
        let (_, again) = Store::open(path).unwrap();
        assert_eq!((again.jobs, again.last_step), (stored.jobs, Some(Time::from_ticks(99_000_000))));
    }
}
