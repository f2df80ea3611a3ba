//! Every fact on disk before anybody is told of it.
//!
//! A folder holds a `SQLite` database in WAL mode with full synchronisation: jobs that have not ended, jobs that have, the
//! journal, and a few named values. A [`Batch`] is one transaction and one `fsync`: all of it is there, or nothing.
//!
//! # How damage is found
//! - Each row has a checksum (CRC-32) of all that it says, of the table that it is in, and of the commit that wrote it. It is checked
//!   whenever the row is read.
//! - Each line of the journal also has the sum of the line before, so that a line that is missing is seen.
//! - One row, the mark, has the number of the last commit, the end of the journal, and how many rows each table has and what their sums
//!   sum up to: a row that is missing, or that stands as it once was, is seen.
//! - The mark's number and sum are also kept in a file beside the database, written after each commit. A database that is whole but older
//!   than that has lost commits (`SQLite` leaves out all that follows a damaged frame of its log, without a word).
//!
//! [`Store::open`] checks all of this, and `SQLite`'s own structures, over the whole database. Damage is never repaired in silence:
//! [`Store::recover`] has to be asked for.

mod error;

mod rows;

mod sums;

mod mark;

mod lock;

mod schema;

mod commit;

mod read;

mod check;

mod recover;

mod journal;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::Connection;

use self::lock::Lock;
use self::mark::{Mark, MarkFile};
use self::rows::Value;
pub use error::{Damage, Place, StoreError};
pub use read::History;
pub use recover::Recovery;
pub use rows::{Batch, EndedFilter, Line, Row};

/// The state of a daemon, open for one process.
///
/// # Example
/// ```
/// use miserly_live::store::{Batch, Row, Store};
///
/// let folder = tempfile::tempdir()?;
/// let mut store = Store::open(folder.path())?;
/// let row = Row { number: 1, ended: false, uid: 1000, queue: "batch".into(), array: None, body: "{}".into() };
/// store.commit(&Batch { lines: vec!["{}".into()], rows: vec![row.clone()], meta: vec![] })?;
/// assert_eq!(store.live_jobs()?, [row]);
/// assert_eq!(store.last_line(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Store {
    connection: Connection,
    mark: Mark,
    marks: MarkFile,
    /// The table of named values, which is small and looked up by name.
    meta: BTreeMap<String, Value>,
    /// Held until the last of us has gone.
    _lock: Lock,
}

impl Store {
    /// Opens the state in `folder`; makes both where there is none. Checks everything, in time that follows the size of the history.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another daemon has it, [`StoreError::Damaged`] with all that was found, [`StoreError::TooNew`]
    /// if a later version wrote it, and whatever keeps us from reading and writing.
    pub fn open(folder: &Path) -> Result<Store, StoreError> {
        let lock = Lock::take(folder)?;
        let home = schema::find_or_make(folder)?;
        let connection = schema::connect(&home)?;
        let marks = MarkFile::open(&home)?;
        check::format(&connection, folder)?;
        let checked = check::whole(&connection, &marks)?;
        Ok(Store { connection, mark: checked.mark, marks, meta: checked.meta, _lock: lock })
    }

    /// The jobs that have not ended, by number.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if a row is not as it was written; if the database cannot be read.
    pub fn live_jobs(&self) -> Result<Vec<Row>, StoreError> {
        read::live_jobs(&self.connection)
    }

    /// A job, whether it has ended or not.
    ///
    /// # Errors
    /// As [`Store::live_jobs`].
    pub fn job(&self, number: i64) -> Result<Option<Row>, StoreError> {
        read::job(&self.connection, number)
    }

    /// The highest number of a job, whether it has ended or not; 0 where there is none.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn highest_job(&self) -> Result<i64, StoreError> {
        read::highest_job(&self.connection)
    }

    /// The jobs that have ended, by number: those that the filter admits, or all.
    ///
    /// # Errors
    /// As [`Store::live_jobs`].
    pub fn jobs(&self, ended: Option<&EndedFilter>) -> Result<Vec<Row>, StoreError> {
        read::ended_jobs(&self.connection, ended.unwrap_or(&EndedFilter::default()))
    }

    /// The first `most` jobs that have ended, by number, from number `from` on.
    ///
    /// # Errors
    /// As [`Store::live_jobs`].
    pub fn ended_from(&self, from: i64, most: u32) -> Result<Vec<Row>, StoreError> {
        read::ended_from(&self.connection, from, most)
    }

    /// A named value.
    ///
    /// # Errors
    /// None today: the values were checked when the store was opened.
    pub fn meta(&self, key: &str) -> Result<Option<String>, StoreError> {
        Ok(self.meta.get(key).map(|value| value.text.clone()))
    }

    /// The journal's lines from number `from` on, in order, as long as `visit` goes on.
    ///
    /// # Errors
    /// As [`Store::live_jobs`].
    pub fn journal(
        &self,
        from: i64,
        visit: &mut dyn FnMut(Line) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        read::journal(&self.connection, from, visit)
    }

    /// The number of the journal's last line; 0 where there is none. Numbers go up by one, but for lines that were lost to damage.
    pub fn last_line(&self) -> i64 {
        self.mark.line
    }
}
