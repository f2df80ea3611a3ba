//! Durable state: every fact is on disk before a client learns of it.
//!
//! A folder holds a `SQLite` database in WAL mode with full synchronisation: live jobs, ended jobs,
//! the journal, and named values. A [`JournalBatch`] is one transaction and one `fsync`: all of it is on
//! disk, or none.
//!
//! # Detection of damage
//! - Each row has a checksum (CRC-32) of its table and its values. Every read checks it.
//! - One row, the mark, holds the number of the last commit. For each table it also holds the
//!   number of rows and the sum of their checksums. A missing or outdated row changes that sum.
//! - A file beside the database repeats the mark. A database that is older than the file has lost
//!   commits: `SQLite` silently drops all that follows a damaged frame of its log.
//!
//! [`Store::open`] checks what a start needs: the mark, the live jobs and the named values. A
//! [`StateCheck`] checks the history in the background, and `SQLite`'s own structures with
//! `quick_check`. [`Store::open_verified`] and [`verify`] check all of it at once. The checksum VFS
//! of `SQLite` is not part of the bundled library, and would not notice a shortened log.
//!
//! # Failed writes
//! After a failed `fsync` the kernel shows a commit that is not on disk. [`Store::open`] writes such
//! pages anew and flushes them, before it checks and shows anything. If that fails, it does not open.
//!
//! # Backups
//! A [`BackupThread`] copies the database at intervals with `VACUUM INTO`, in a read transaction of
//! its own, so that commits go on. A copy counts once it was reopened and checked. Damage is never
//! repaired silently: [`Store::recover`] is called on request. It takes the rows that plain SQL can
//! still read, and the newest undamaged backup for the rest.

pub mod crash_point;

pub mod folder;

mod error;

mod rows;

mod checksum;

mod mark;

mod lock;

mod schema;

mod files;

mod durable;

mod commit;

mod read;

mod readers;

mod check;

mod state_check;

mod backup;

mod schedule;

mod recover;

mod journal;

mod segments;

use std::collections::BTreeMap;
use std::path::Path;

use miserly_engine::JournalBatch;
use rusqlite::Connection;

pub use backup::{Backups, ENDED, back_up, ended_folders};
pub use error::{Damage, DamageSite, StoreError};
pub use files::private_folder;
pub use folder::FolderError;
pub use read::History;
pub use readers::Readers;
pub use recover::{Recovery, UsedBackup};
pub use rows::Line;
pub use schedule::{BackupPlan, BackupThread};
pub use segments::Segment;
pub use state_check::{StateCheck, verify};

use self::check::Checked;
use self::durable::Disk;
use self::lock::StateLock;
use self::mark::{CommitMark, MarkFile};
use self::rows::{Named, Stored};

/// A check of a database and its mark.
type Check = fn(&Connection, &MarkFile) -> Result<Checked, StoreError>;

/// The state of a daemon, open in one process.
///
/// # Example
/// ```
/// use miserly_engine::{JobRow, JournalBatch};
/// use miserly_store::Store;
///
/// let folder = tempfile::tempdir()?;
/// let mut store = Store::open(folder.path())?;
/// let row = JobRow { number: 1, ended: false, uid: 1000, queue: "batch".into(), body: "{}".into(), ..JobRow::default() };
/// store.commit(&JournalBatch { lines: vec!["{}".into()], rows: vec![row.clone()], ..JournalBatch::default() })?;
/// assert_eq!(store.live_jobs()?, [row]);
/// assert_eq!(store.last_line(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Store {
    connection: Connection,
    mark: CommitMark,
    marks: MarkFile,
    /// The table of named values: it is small, and read by name.
    meta: BTreeMap<String, Stored<Named>>,
    /// Declared last, so that it is released last.
    _lock: StateLock,
}

impl Store {
    /// Opens the state in `folder`, or creates it. Checks what a start needs, which takes time in
    /// proportion to the live jobs. If another version of this program wrote the state, takes a
    /// backup first.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another daemon has it, [`StoreError::Damaged`] if it lacks commits,
    /// named values or live jobs, [`StoreError::TooNew`] if a later version wrote it; if it cannot be
    /// read or written. [`StoreError::Full`] if there is no room to flush it. A live job whose row
    /// alone is damaged is no error: [`Store::live_jobs`] returns it with its problem.
    pub fn open(folder: &Path) -> Result<Store, StoreError> {
        Store::open_on(folder, &durable::rewrite, check::opening)
    }

    /// As [`Store::open`], and checks the whole database first. That takes time in proportion to the
    /// history.
    ///
    /// # Errors
    /// As [`Store::open`], and [`StoreError::Damaged`] with all damages.
    pub fn open_verified(folder: &Path) -> Result<Store, StoreError> {
        Store::open_on(folder, &durable::rewrite, check::whole)
    }

    /// As [`Store::open`]. `disk` makes files durable, and `check` checks them.
    fn open_on(folder: &Path, disk: Disk<'_>, check: Check) -> Result<Store, StoreError> {
        let lock = StateLock::take(folder)?;
        let home = match files::find(folder)? {
            Some(home) => {
                durable::flush(folder, &home, disk)?;
                home
            }
            None if backup::list(folder)?.is_empty() => {
                files::install(folder, &files::make(folder, commit::first)?)?
            }
            None => {
                let problem = "its folder is missing, and there are backups";
                return Err(StoreError::damaged(DamageSite::Structure, problem));
            }
        };
        let connection = schema::connect(&home)?;
        check::format(&connection, folder)?;
        let mut store = Store::over(connection, &home, lock, check)?;
        store.note_version(folder)?;
        // Damage of the log costs all commits after it. If the disk is rather full, the log stays
        // as it is.
        if backup::check_room(folder, &home).is_ok() {
            match files::checkpoint(&store.connection) {
                Err(StoreError::Full) => {}
                other => other?,
            }
        }
        Ok(store)
    }

    /// Checks a database and returns the store over it.
    fn over(connection: Connection, home: &Path, lock: StateLock, check: Check) -> Result<Store, StoreError> {
        let marks = MarkFile::open(home)?;
        let (mark, meta) = check(&connection, &marks)?.undamaged()?;
        Ok(Store { connection, mark, marks, meta, _lock: lock })
    }

    /// Takes a backup and records the version and the format of this program, if another version wrote
    /// the state. Nothing else may be written before: an older program must refuse the state then.
    fn note_version(&mut self, folder: &Path) -> Result<(), StoreError> {
        let own = [(schema::FORMAT_KEY, schema::FORMAT.to_string()), schema::version()];
        if own.iter().all(|(key, text)| self.meta(key) == Some(text)) {
            return Ok(());
        }
        if let Err(error) = Backups::new(folder).take(usize::MAX) {
            tracing::error!("no backup was taken before the first start of this version: {error}");
        }
        let values = own.into_iter().map(|(key, text)| (key.to_owned(), text)).collect();
        self.commit(&JournalBatch { values, ..JournalBatch::default() })
    }

    /// Returns the highest number that a job ever had, even if the job was lost or forgotten; 0
    /// before the first.
    pub fn highest_job(&self) -> i64 {
        self.mark.highest
    }

    /// Returns the number of the last commit. Each commit has a higher one than those before.
    pub fn last_commit(&self) -> i64 {
        self.mark.commit
    }

    /// Returns a named value.
    pub fn meta(&self, key: &str) -> Option<&str> {
        self.meta.get(key).map(|stored| stored.row.text.as_str())
    }

    /// Returns the number of the last journal line; 0 before the first. Numbers increase by one,
    /// except where a recovery lost lines.
    pub fn last_line(&self) -> i64 {
        self.mark.line
    }
}
