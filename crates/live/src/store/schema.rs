//! The files of a state, and how the database is opened.
//!
//! ```text
//! FOLDER/lock        who has the state
//! FOLDER/store/      jobs.db, its log jobs.db-wal, mark
//! FOLDER/damaged-N/  what a recovery set aside
//! ```

use std::fs::{self, DirBuilder, File};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, params};

use super::commit;
use super::error::{Damage, Place, StoreError};
use super::mark::{Mark, MarkFile};

/// The format that this version writes.
pub(super) const FORMAT: u32 = 1;

/// The name of the value that has the format.
pub(super) const FORMAT_KEY: &str = "format";

/// The database in its folder.
pub(super) const DATABASE: &str = "jobs.db";

/// The folder of a database that a recovery has made, whole, until it takes the place of the damaged one.
pub(super) const RECOVERED: &str = "store.recovered";

/// The size of the database's pages, bytes.
pub(super) const PAGE: u32 = 4096;

const TABLES: &str = "
    CREATE TABLE live (number INTEGER PRIMARY KEY, made INTEGER NOT NULL, uid INTEGER NOT NULL, queue TEXT NOT NULL,
        array INTEGER, body TEXT NOT NULL, sum INTEGER NOT NULL) STRICT;
    CREATE TABLE ended (number INTEGER PRIMARY KEY, made INTEGER NOT NULL, uid INTEGER NOT NULL, queue TEXT NOT NULL,
        array INTEGER, body TEXT NOT NULL, sum INTEGER NOT NULL) STRICT;
    CREATE TABLE journal (number INTEGER PRIMARY KEY, made INTEGER NOT NULL, before INTEGER NOT NULL,
        body TEXT NOT NULL, sum INTEGER NOT NULL) STRICT;
    CREATE TABLE meta (number INTEGER PRIMARY KEY, made INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
        sum INTEGER NOT NULL) STRICT;
    CREATE TABLE mark (number INTEGER PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL) STRICT;
";

/// The folder of the database; made, with an empty database, where there is none.
pub(super) fn find_or_make(folder: &Path) -> Result<PathBuf, StoreError> {
    replace(folder)?;
    let home = folder.join("store");
    if !home.exists() {
        let making = make(folder, commit::first)?;
        rename(&making, &home)?;
    }
    Ok(home)
}

/// Puts what a recovery has made in the place of what was damaged; where that is now. Nothing is done where nothing was made, and what was
/// interrupted is finished.
pub(super) fn replace(folder: &Path) -> Result<Option<PathBuf>, StoreError> {
    let (home, recovered) = (folder.join("store"), folder.join(RECOVERED));
    if !recovered.exists() {
        return Ok(None);
    }
    let mut aside = None;
    if home.exists() {
        let free = |number: u32| Some(folder.join(format!("damaged-{number}"))).filter(|path| !path.exists());
        aside = (1..u32::MAX).find_map(free);
        aside.as_deref().map_or(Ok(()), |aside| rename(&home, aside))?;
    }
    rename(&recovered, &home)?;
    Ok(aside)
}

/// Makes a new database beside the one that is there, filled by `fill`, and whole on disk when this returns.
pub(super) fn make(
    folder: &Path,
    fill: impl FnOnce(&mut Connection) -> Result<Mark, StoreError>,
) -> Result<PathBuf, StoreError> {
    let making = folder.join("store.making");
    if making.exists() {
        fs::remove_dir_all(&making).map_err(StoreError::io(&making))?;
    }
    DirBuilder::new().mode(0o700).create(&making).map_err(StoreError::io(&making))?;
    new_file(&making.join(DATABASE), b"")?;
    let mut connection = Connection::open(making.join(DATABASE))?;
    connection.pragma_update(None, "page_size", PAGE)?;
    settle(&connection)?;
    connection.execute_batch(TABLES)?;
    let mark = fill(&mut connection)?;
    // From here on the database's first page is in the database itself, not only in its log.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    drop(connection);
    new_file(&making.join(MarkFile::NAME), MarkFile::fresh(&mark).as_bytes())?;
    sync(&making)?;
    Ok(making)
}

/// Writes the mark in place of the last one.
pub(super) fn write_mark(connection: &Connection, mark: &Mark) -> Result<(), StoreError> {
    let sql = "INSERT OR REPLACE INTO mark (number, body, sum) VALUES (1, ?, ?)";
    connection.prepare_cached(sql)?.execute(params![mark.text(), mark.sum()])?;
    Ok(())
}

/// The mark, if it is whole.
pub(super) fn read_mark(connection: &Connection) -> Option<Mark> {
    let sql = "SELECT body, sum FROM mark WHERE number = 1";
    let (text, sum) =
        connection.query_row(sql, [], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).ok()?;
    Mark::read(&text, sum)
}

/// Gives a folder another name, for good.
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::rename(from, to).map_err(StoreError::io(to))?;
    to.parent().map_or(Ok(()), sync)
}

/// A connection that may write.
pub(super) fn connect(home: &Path) -> Result<Connection, StoreError> {
    let path = home.join(DATABASE);
    head(&path)?;
    let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    settle(&connection)?;
    Ok(connection)
}

/// A connection that only reads; others may write at the same time.
pub(super) fn connect_to_read(home: &Path) -> Result<Connection, StoreError> {
    let path = home.join(DATABASE);
    head(&path)?;
    let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(std::time::Duration::from_secs(10))?;
    Ok(connection)
}

fn settle(connection: &Connection) -> Result<(), StoreError> {
    // A log that turns out damaged must be left as it is: closing would bring in what is before the damage and delete the rest.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    // Nothing that was overwritten may be taken for a row when a damaged database is searched for rows.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    Ok(())
}

/// Looks at the database's head before `SQLite` does, which would delete the log of a database that is empty.
fn head(path: &Path) -> Result<(), StoreError> {
    let damaged = |what: &str| StoreError::Damaged(vec![Damage::new(Place::Structure, what)]);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(damaged("it has gone")),
        Err(error) => return Err(StoreError::io(path)(error)),
    };
    let mut head = Vec::new();
    file.take(20).read_to_end(&mut head).map_err(StoreError::io(path))?;
    // Magic, page size, and twice 2 for a database with a log of its own.
    if head == *b"SQLite format 3\0\x10\0\x02\x02" {
        Ok(())
    } else {
        Err(damaged("its head is not what it was"))
    }
}

fn new_file(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let write = || {
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(StoreError::io(path))
}

/// Makes the names in a folder last.
fn sync(folder: &Path) -> Result<(), StoreError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(StoreError::io(folder))
}
