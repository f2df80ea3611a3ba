//! Backups of the database: taken by `SQLite`, checked, rotated.

use std::fs;
use std::path::{Path, PathBuf};

use miserly_launch::fault::FaultPoint;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::statvfs;

use super::error::StoreError;
use super::mark::CommitMark;
use super::{check, files, schema};

/// The folder, in a state folder, of the attempts that ended since the newest backup.
///
/// The launcher moves the record of an ended attempt there. A recovery uses these records: a backup
/// may be older than the end of the attempt.
pub const ENDED: &str = "ended";

/// The folder of the backups in a state folder.
pub(super) const BACKUPS: &str = "backups";

/// The name of a backup until it is complete.
const MAKING: &str = "making.db";

/// The backups of one state.
pub struct Backups {
    folder: PathBuf,
    /// The commit that the last backup contains, if this process took it.
    last: Option<i64>,
}

impl Backups {
    /// Returns the backups of the state in `folder`.
    pub fn new(folder: &Path) -> Backups {
        Backups { folder: folder.to_owned(), last: None }
    }

    /// Takes a backup and keeps the newest `keep`. Returns its path, or `None` if nothing was
    /// committed since the last call. A daemon may use the state at the same time, and is never
    /// blocked.
    ///
    /// # Errors
    /// [`StoreError::NoRoom`] or [`StoreError::Full`] if the disk is too full,
    /// [`StoreError::Damaged`] if the state or its copy is damaged. No present backup is removed
    /// then.
    pub fn take(&mut self, keep: usize) -> Result<Option<PathBuf>, StoreError> {
        let home = files::home(&self.folder);
        let connection = schema::connect_to_read(&home)?;
        if self.last.is_some() && self.last == schema::read_mark(&connection).map(|mark| mark.commit) {
            return Ok(None);
        }
        let folder = self.folder.join(BACKUPS);
        files::make_folder(&folder)?;
        check_room(&folder, &home)?;
        let number = next_number(&self.folder)?;
        // Before the copy: an attempt that ends from now on may be missing in it.
        set_aside_ended(&self.folder, number)?;
        let making = folder.join(MAKING);
        let mark = match copy(&connection, &making) {
            Ok(mark) => mark,
            Err(error) => {
                // It would only take space.
                let _ = fs::remove_file(&making);
                return Err(error);
            }
        };
        let path = folder.join(format!("{number}.db"));
        files::rename(&making, &path)?;
        self.last = Some(mark.commit);
        rotate(&self.folder, keep.max(1))?;
        Ok(Some(path))
    }
}

/// Copies the state in `folder` to a new file in the folder `to`, and checks the copy. Returns its
/// path, which has the number of the last commit. A daemon may use the state at the same time, and is
/// never blocked.
///
/// # Errors
/// [`StoreError::NoRoom`] or [`StoreError::Full`] if the disk is too full, [`StoreError::Damaged`] if
/// the state or its copy is damaged; if the state cannot be read. There is no new file then.
pub fn back_up(folder: &Path, to: &Path) -> Result<PathBuf, StoreError> {
    let home = files::home(folder);
    fs::metadata(&home).map_err(StoreError::io(&home))?;
    let connection = schema::connect_to_read(&home)?;
    files::make_folder(to)?;
    check_room(to, &home)?;
    let making = to.join(MAKING);
    let mark = copy(&connection, &making).inspect_err(|_| {
        // It would only take space.
        let _ = fs::remove_file(&making);
    })?;
    let path = to.join(format!("miserly-{}.db", mark.commit));
    files::rename(&making, &path)?;
    Ok(path)
}

/// Returns the numbers of the backups of a state, oldest first.
pub(super) fn list(folder: &Path) -> Result<Vec<u64>, StoreError> {
    numbered(folder, "db")
}

/// Returns the path of a backup.
pub(super) fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(BACKUPS).join(format!("{number}.db"))
}

/// Returns the folders with records of ended attempts that are still kept, newest first.
///
/// # Errors
/// If the folder of the backups cannot be listed.
pub fn ended_folders(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let older = numbered(folder, "ended")?.into_iter().rev();
    let older = older.map(|number| folder.join(BACKUPS).join(format!("{number}.ended")));
    Ok(std::iter::once(folder.join(ENDED)).chain(older).filter(|path| path.exists()).collect())
}

/// Opens a backup and checks all of it.
///
/// # Errors
/// [`StoreError::Damaged`] with all damages.
pub(super) fn open(path: &Path) -> Result<(Connection, CommitMark), StoreError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    check::format(&connection, path)?;
    let (mark, _) = check::database(&connection).undamaged()?;
    Ok((connection, mark))
}

/// Copies the database into a new file of mode 0600, checks it, and flushes it to disk.
fn copy(connection: &Connection, to: &Path) -> Result<CommitMark, StoreError> {
    match fs::remove_file(to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(StoreError::io(to)(error)),
        _ => files::new_file(to, b"")?,
    }
    FaultPoint::Backup.pass().map_err(|error| StoreError::write(to, error))?;
    connection.execute("VACUUM INTO ?", [to.to_string_lossy()])?;
    let (_, mark) = open(to)?;
    files::sync(to)?;
    Ok(mark)
}

/// Checks that a copy of the database leaves the daemon as much space as it takes.
pub(super) fn check_room(folder: &Path, home: &Path) -> Result<(), StoreError> {
    let size = |name: String| fs::metadata(home.join(name)).map_or(0, |file| file.len());
    let needed = size(schema::DATABASE.into()) + size(format!("{}-wal", schema::DATABASE));
    let disk = statvfs(folder).map_err(|errno| StoreError::io(folder)(errno.into()))?;
    let available = disk.f_bavail.saturating_mul(disk.f_frsize);
    if available < needed.saturating_mul(2) {
        return Err(StoreError::NoRoom { path: folder.display().to_string(), needed, available });
    }
    Ok(())
}

/// Gives the records of ended attempts the number of the backup that will contain their ends.
fn set_aside_ended(folder: &Path, number: u64) -> Result<(), StoreError> {
    let ended = folder.join(ENDED);
    if !ended.exists() {
        return Ok(());
    }
    files::rename(&ended, &folder.join(BACKUPS).join(format!("{number}.ended")))
}

/// Removes all backups but the newest, and the records of attempts that all remaining backups
/// contain.
fn rotate(folder: &Path, keep: usize) -> Result<(), StoreError> {
    let backups = list(folder)?;
    let (old, kept) = backups.split_at(backups.len().saturating_sub(keep));
    for number in old {
        let path = path(folder, *number);
        fs::remove_file(&path).map_err(StoreError::io(path))?;
    }
    let oldest = kept.first().copied().unwrap_or(0);
    for number in numbered(folder, "ended")?.into_iter().filter(|number| *number <= oldest) {
        let path = folder.join(BACKUPS).join(format!("{number}.ended"));
        fs::remove_dir_all(&path).map_err(StoreError::io(path))?;
    }
    Ok(())
}

/// Returns a number that no backup has had.
fn next_number(folder: &Path) -> Result<u64, StoreError> {
    let last = |extension| Ok::<_, StoreError>(numbered(folder, extension)?.pop().unwrap_or(0));
    Ok(last("db")?.max(last("ended")?) + 1)
}

/// Returns the numbers of the files `N.EXTENSION` among the backups, in order.
fn numbered(folder: &Path, extension: &str) -> Result<Vec<u64>, StoreError> {
    let folder = folder.join(BACKUPS);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(StoreError::io(&folder))?,
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry.map_err(StoreError::io(&folder))?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(extension)?.strip_suffix('.'));
        numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}
