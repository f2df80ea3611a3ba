//! The tables of the database, and its connections.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, params};

use super::error::{DamageSite, StoreError};
use super::mark::CommitMark;

/// The format that this version writes.
///
/// | format | since |
/// |---|---|
/// | 1 | the first version |
/// | 2 | promises that moved are named values; the journal unites them; values can be removed |
/// | 3 | the journal has checkpoints and sealed segments, and may begin at a checkpoint |
/// | 4 | jobs have predicted runtimes, and queues what their policies learned of users |
/// | 5 | jobs wait for the success or the failure of others, arrays have lists of indexes and limits, jobs run again after failures |
/// | 6 | requests of waiting jobs are replaced |
/// | 7 | pools have exceptions, which are those of reservations; jobs have limits and groups; a job fails in its prolog |
/// | 8 | shims wait for the windows of their jobs; jobs are resizable, and want a number of processors |
/// | 9 | a launch is the cause of a late start |
/// | 10 | jobs request GPUs of a type, queues have a charge, and users limits of GPUs |
/// | 11 | queues have GPUs by class, jobs their devices and shares of the memory of a GPU |
pub(super) const FORMAT: u32 = 11;

/// The name of the value that holds the format.
pub(super) const FORMAT_KEY: &str = "format";

/// The file of the database in the store folder.
pub(super) const DATABASE: &str = "jobs.db";

const TABLES: &str = "
    CREATE TABLE live (number INTEGER PRIMARY KEY, uid INTEGER NOT NULL, queue TEXT NOT NULL, array INTEGER,
        body TEXT NOT NULL, sum INTEGER NOT NULL) STRICT;
    CREATE TABLE ended (number INTEGER PRIMARY KEY, uid INTEGER NOT NULL, queue TEXT NOT NULL, array INTEGER,
        body TEXT NOT NULL, sum INTEGER NOT NULL) STRICT;
    CREATE TABLE journal (number INTEGER PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL) STRICT;
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, sum INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE mark (number INTEGER PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL) STRICT;
";

/// The size to which the write-ahead log shrinks after a large commit, in bytes. A start writes the log anew.
const LOG_KEPT: u32 = 8 << 20;

/// Returns the named value that holds the version of this program.
pub(super) fn version() -> (&'static str, String) {
    ("version", env!("CARGO_PKG_VERSION").to_owned())
}

/// Creates the tables in an empty database file.
pub(super) fn create(path: &Path) -> Result<Connection, StoreError> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "page_size", 4096)?;
    configure(&connection)?;
    connection.execute_batch(TABLES)?;
    Ok(connection)
}

/// Writes the mark in place of the last one.
pub(super) fn write_mark(connection: &Connection, mark: &CommitMark) -> Result<(), StoreError> {
    let sql = "INSERT OR REPLACE INTO mark (number, body, sum) VALUES (1, ?, ?)";
    connection.prepare_cached(sql)?.execute(params![mark.text(), mark.sum()])?;
    Ok(())
}

/// Reads the mark. Returns `None` if it is damaged.
pub(super) fn read_mark(connection: &Connection) -> Option<CommitMark> {
    let sql = "SELECT body, sum FROM mark WHERE number = 1";
    let (text, sum) =
        connection.query_row(sql, [], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).ok()?;
    CommitMark::read(&text, sum)
}

/// Opens the database for reading and writing.
pub(super) fn connect(home: &Path) -> Result<Connection, StoreError> {
    let path = home.join(DATABASE);
    check_head(&path)?;
    let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    configure(&connection)?;
    Ok(connection)
}

/// Opens the database for reading. Another process may write at the same time.
pub(super) fn connect_to_read(home: &Path) -> Result<Connection, StoreError> {
    let path = home.join(DATABASE);
    check_head(&path)?;
    let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    Ok(connection)
}

fn configure(connection: &Connection) -> Result<(), StoreError> {
    // Closing must not checkpoint a damaged log: that would drop all frames after the damage.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "journal_size_limit", LOG_KEPT)?;
    Ok(())
}

/// Checks the head of the file. `SQLite` would take an empty file for a new database and delete its
/// log.
pub(super) fn check_head(path: &Path) -> Result<(), StoreError> {
    let damaged = |problem: &str| StoreError::damaged(DamageSite::Structure, problem);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(damaged("it is missing")),
        Err(error) => return Err(StoreError::io(path)(error)),
    };
    let mut head = Vec::new();
    file.take(20).read_to_end(&mut head).map_err(StoreError::io(path))?;
    // Magic, page size 4096, and twice 2 for a write-ahead log.
    if head == *b"SQLite format 3\0\x10\0\x02\x02" { Ok(()) } else { Err(damaged("its head is damaged")) }
}
