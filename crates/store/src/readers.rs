//! Readers of the finished jobs, beside the daemon that writes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use miserly_engine::{EndedFilter, EndedJobs, JobRow, JournalError};
use rusqlite::Connection;

use super::error::StoreError;
use super::{files, read, schema};

/// Read-only connections to one state, for any thread. No reader delays a commit.
///
/// Each query sees the commits before it. As many connections are open as were ever used at once.
#[derive(Clone, Debug)]
pub struct Readers {
    folder: PathBuf,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    /// Returns readers of the state in `folder`, which a [`Store`](super::Store) has open.
    pub fn new(folder: &Path) -> Readers {
        Readers { folder: folder.to_owned(), idle: Arc::default() }
    }

    /// Returns the result of a query on a connection of its own.
    fn read<T>(&self, query: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, JournalError> {
        let connection = match self.lock().pop() {
            Some(connection) => connection,
            None => schema::connect_to_read(&files::home(&self.folder))?,
        };
        // After an error the connection is not used again.
        let found = query(&connection)?;
        self.lock().push(connection);
        Ok(found)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EndedJobs for Readers {
    fn job(&self, number: i64) -> Result<Option<JobRow>, JournalError> {
        self.read(|connection| read::job(connection, number))
    }

    fn ended_jobs(&self, filter: &EndedFilter) -> Result<Vec<JobRow>, JournalError> {
        self.read(|connection| read::ended_jobs(connection, filter))
    }

    fn ended_from(&self, from: i64, limit: u32) -> Result<Vec<JobRow>, JournalError> {
        self.read(|connection| read::ended_from(connection, from, limit))
    }
}

#[cfg(test)]
mod tests {
    use miserly_engine::JournalBatch;

    use super::*;
    use crate::Store;

    #[test]
    fn a_reader_sees_each_commit() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let mut store = Store::open(folder.path())?;
        let readers = Readers::new(folder.path());
        for number in 1..4 {
            let row = JobRow {
                number,
                ended: true,
                uid: 7,
                queue: "batch".into(),
                body: "{}".into(),
                ..JobRow::default()
            };
            store.commit(&JournalBatch { rows: vec![row.clone()], ..JournalBatch::default() })?;
            assert_eq!(readers.job(number)?, Some(row));
            let counts =
                (readers.ended_from(0, 10)?.len(), readers.ended_jobs(&EndedFilter::default())?.len());
            assert_eq!(counts, (number.try_into()?, number.try_into()?));
        }
        assert_eq!((readers.job(9)?, readers.lock().len()), (None, 1));
        Ok(())
    }
}
