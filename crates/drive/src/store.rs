//! The stored state of the driver: a database of one file.

use std::collections::BTreeMap;
use std::fs::TryLockError;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use miserly_core::Time;
use miserly_saved::{SavedEntry, SavedLedgerState};
use rusqlite::{Connection, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

use crate::DriveError;
use crate::comment::CommentField;
use crate::desk::{Facts, Stored, StoredJob};
use crate::notes::StartRecord;

/// The format that this version writes.
const FORMAT: u32 = 1;

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
    /// Held as long as the driver lives.
    _lock: std::fs::File,
}

/// A job as it is stored.
#[derive(Deserialize, Serialize)]
struct Row {
    number: i64,
    facts: Facts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<SavedEntry>,
}

/// All but the jobs.
#[derive(Default, Deserialize, Serialize)]
struct Head {
    format: u32,
    numbers: i64,
    last: Option<i64>,
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
        let stored = load(&connection, &path)?;
        let handed_back = folder.join(HANDED_BACK);
        match std::fs::remove_file(&handed_back) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        Ok((Store { connection, path, handed_back, jobs: stored.jobs.clone(), _lock: lock }, stored))
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
        let head = Head {
            format: FORMAT,
            numbers: stored.numbers,
            last: stored.last.map(Time::ticks),
            nodes: stored.nodes,
            groups: stored.groups,
            policy: stored.policy,
            reservation: stored.reservation,
            comments: stored.comments,
            state: SavedLedgerState::new(&stored.state),
        };
        {
            let mut put = transaction
                .prepare_cached("INSERT OR REPLACE INTO jobs (id, body) VALUES (?, ?)")
                .map_err(failed)?;
            for (id, job) in stored.jobs.iter().filter(|(id, job)| self.jobs.get(*id) != Some(job)) {
                let StoredJob { number, facts, entry } = job;
                let row =
                    Row { number: *number, facts: facts.clone(), entry: entry.as_ref().map(SavedEntry::new) };
                put.execute(params![id, text(&row)?]).map_err(failed)?;
            }
            let mut remove = transaction.prepare_cached("DELETE FROM jobs WHERE id = ?").map_err(failed)?;
            for id in self.jobs.keys().filter(|id| !stored.jobs.contains_key(*id)) {
                remove.execute(params![id]).map_err(failed)?;
            }
            let mut start =
                transaction.prepare_cached("INSERT INTO starts (body) VALUES (?)").map_err(failed)?;
            for record in starts {
                start.execute(params![text(record)?]).map_err(failed)?;
            }
            let sql = "INSERT OR REPLACE INTO meta (key, body) VALUES ('head', ?)";
            transaction.execute(sql, params![text(&head)?]).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        self.jobs = stored.jobs;
        Ok(())
    }
}

/// Ends the driver of a folder at its next step, and waits for that, but not for longer than some seconds. Returns the state, and
/// whether the driver has ended.
pub(crate) fn hand_back(folder: &Path) -> Result<(Stored, bool), DriveError> {
    let failed = |error: std::io::Error| DriveError::Folder { folder: folder.to_owned(), error };
    // A folder without a state is none.
    look(folder)?;
    std::fs::write(folder.join(HANDED_BACK), "").map_err(failed)?;
    let lock = std::fs::File::open(folder.join(LOCK)).map_err(failed)?;
    let has_ended = is_locked_within(&lock, 2 * LOCKED_WITHIN);
    Ok((look(folder)?.0, has_ended))
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
pub(crate) fn look(folder: &Path) -> Result<(Stored, Vec<StartRecord>), DriveError> {
    let path = folder.join(DATABASE);
    if !Store::is_in(folder)? {
        return Err(DriveError::NoState { folder: folder.to_owned() });
    }
    let failed = |error| DriveError::Database { path: path.clone(), error };
    let connection = connect(&path)?;
    let stored = load(&connection, &path)?;
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

fn load(connection: &Connection, path: &Path) -> Result<Stored, DriveError> {
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
        let Row { number, facts, entry } = parse(&body)?;
        jobs.insert(id, StoredJob { number, facts, entry: entry.map(|entry| entry.entry()) });
    }
    Ok(Stored {
        numbers: head.numbers,
        last: head.last.map(Time::from_ticks),
        nodes: head.nodes,
        groups: head.groups,
        policy: head.policy,
        reservation: head.reservation,
        comments: head.comments,
        state: head.state.state(),
        jobs,
    })
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
}
