//! The files of a state folder.
//!
//! ```text
//! FOLDER/lock        the lock, with the number of the process that holds it
//! FOLDER/store/      jobs.db, its write-ahead log jobs.db-wal, mark
//! FOLDER/backups/    N.db, and N.ended: attempts that ended between backup N-1 and backup N
//! FOLDER/ended/      attempts that ended since the newest backup
//! FOLDER/damaged-N/  the files that a recovery replaced
//! ```

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::error::StoreError;
use super::mark::{CommitMark, MarkFile};
use super::schema;

/// The folder of a recovered store, complete, until it replaces the damaged one.
const RECOVERED: &str = "store.recovered";

/// The folder of a store that is being written.
const MAKING: &str = "store.making";

/// Returns the store folder, if there is one. First completes an interrupted recovery.
pub(super) fn find(folder: &Path) -> Result<Option<PathBuf>, StoreError> {
    replace(folder)?;
    Ok(Some(home(folder)).filter(|home| home.exists()))
}

/// Returns the path of the store folder.
pub(super) fn home(folder: &Path) -> PathBuf {
    folder.join("store")
}

/// Writes a store folder beside the present one, filled by `fill`. It is on disk on return.
pub(super) fn make(
    folder: &Path,
    fill: impl FnOnce(&mut Connection) -> Result<CommitMark, StoreError>,
) -> Result<PathBuf, StoreError> {
    let making = folder.join(MAKING);
    if making.exists() {
        fs::remove_dir_all(&making).map_err(StoreError::io(&making))?;
    }
    make_folder(&making)?;
    let database = making.join(schema::DATABASE);
    new_file(&database, b"")?;
    let mut connection = schema::create(&database)?;
    let mark = fill(&mut connection)?;
    checkpoint(&connection)?;
    drop(connection);
    // `SQLite` reports the new journal mode even if a failed `fsync` has undone it.
    schema::check_head(&database)
        .map_err(|_| StoreError::io(&database)(io::Error::other("a write has failed; start again")))?;
    new_file(&making.join(MarkFile::NAME), MarkFile::content(&mark).as_bytes())?;
    sync(&making)?;
    Ok(making)
}

/// Moves all commits from the log into the database.
pub(super) fn checkpoint(connection: &Connection) -> Result<(), StoreError> {
    Ok(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
}

/// Gives a new store folder its name.
pub(super) fn install(folder: &Path, made: &Path) -> Result<PathBuf, StoreError> {
    let home = home(folder);
    rename(made, &home)?;
    Ok(home)
}

/// Replaces the damaged store folder by a recovered one. Returns the new name of the damaged one.
pub(super) fn install_recovered(folder: &Path, made: &Path) -> Result<PathBuf, StoreError> {
    rename(made, &folder.join(RECOVERED))?;
    let aside = free_name(folder);
    replace(folder)?;
    Ok(aside)
}

/// Completes a recovery, if one was interrupted.
fn replace(folder: &Path) -> Result<(), StoreError> {
    let (home, recovered) = (home(folder), folder.join(RECOVERED));
    if !recovered.exists() {
        return Ok(());
    }
    if home.exists() {
        rename(&home, &free_name(folder))?;
    }
    rename(&recovered, &home)
}

fn free_name(folder: &Path) -> PathBuf {
    let names = (1_u32..).map(|number| folder.join(format!("damaged-{number}")));
    names.into_iter().find(|path| !path.exists()).unwrap_or_else(|| folder.join("damaged"))
}

/// Renames a file or folder durably.
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::rename(from, to).map_err(StoreError::io(to))?;
    to.parent().map_or(Ok(()), sync)
}

/// Creates a folder with mode 0700, if it is missing.
pub(super) fn make_folder(path: &Path) -> Result<(), StoreError> {
    private_folder(path).map_err(StoreError::io(path))
}

/// Creates a folder with mode 0700, if it is missing, and the folders above it.
///
/// # Errors
/// The folder cannot be created.
pub fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a file with mode 0600 durably.
pub(super) fn new_file(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let write = || {
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(StoreError::io(path))
}

/// Flushes a file, or the names in a folder, to disk.
pub(super) fn sync(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(StoreError::io(path))
}
