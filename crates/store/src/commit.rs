//! Commits: one batch, one transaction, one `fsync`.

use std::collections::BTreeMap;
use std::path::Path;

use miserly_engine::{JobRow, JournalBatch};
use miserly_launch::fault::FaultPoint;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::error::{DamageSite, StoreError};
use super::mark::CommitMark;
use super::rows::{self, JOB, LINE, Line, META, Named, Stored};
use super::{Store, schema};

impl Store {
    /// Writes a batch, and returns when it is on disk. An empty batch costs nothing.
    ///
    /// # Errors
    /// [`StoreError::Full`] if the disk rejects it: nothing was changed, and the store can still be
    /// used. After any other error it is unknown whether the batch is on disk, and the store must
    /// be reopened.
    pub fn commit(&mut self, batch: &JournalBatch) -> Result<(), StoreError> {
        if batch.is_empty() {
            return Ok(());
        }
        let sealed = batch.checkpoint.as_ref().map(|_| self.sealed_so_far()).unwrap_or_default();
        let mut writer = Writer::begin(&mut self.connection, self.mark)?;
        let segment = writer.lines(batch, sealed)?;
        for row in &batch.rows {
            writer.job(row)?;
        }
        // The last value of a key counts.
        let values: BTreeMap<&str, &str> =
            batch.values.iter().map(|(key, text)| (&key[..], &text[..])).collect();
        let mut changed = vec![];
        let values =
            values.into_iter().map(|(key, text)| Named { key: key.to_owned(), text: text.to_owned() });
        for named in values.chain(segment) {
            let (key, old) = (named.key.clone(), self.meta.get(&named.key).map(|old| old.sum));
            changed.push((key, writer.meta(old, named)?));
        }
        let mark = writer.finish()?;
        for (key, stored) in changed {
            match stored {
                Some(stored) => drop(self.meta.insert(key, stored)),
                None => drop(self.meta.remove(&key)),
            }
        }
        self.committed(mark);
        Ok(())
    }

    /// Removes ended jobs, and returns when that is on disk. Skips numbers without such a job.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn forget(&mut self, numbers: &[i64]) -> Result<(), StoreError> {
        if numbers.is_empty() {
            return Ok(());
        }
        let mut writer = Writer::begin(&mut self.connection, self.mark)?;
        for number in numbers {
            writer.remove(*number, true)?;
        }
        let mark = writer.finish()?;
        self.committed(mark);
        Ok(())
    }

    /// Records that a transaction is on disk. If the mark file cannot be written, the next commit
    /// writes it.
    pub(super) fn committed(&mut self, mark: CommitMark) {
        self.mark = mark;
        let _ = self.marks.write(&self.mark);
    }
}

/// Writes the first commit of a new state: its format and the version of this program.
pub(super) fn first(connection: &mut Connection) -> Result<CommitMark, StoreError> {
    let mut writer = Writer::begin(connection, CommitMark::default())?;
    for (key, text) in [(schema::FORMAT_KEY, schema::FORMAT.to_string()), schema::version()] {
        writer.meta(None, Named { key: key.to_owned(), text })?;
    }
    writer.finish()
}

/// A transaction and the mark that it will leave.
pub(super) struct Writer<'c> {
    transaction: Transaction<'c>,
    pub(super) mark: CommitMark,
}

impl<'c> Writer<'c> {
    /// Begins the commit after `last`.
    pub(super) fn begin(connection: &'c mut Connection, last: CommitMark) -> Result<Writer<'c>, StoreError> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        Ok(Writer { transaction, mark: CommitMark { commit: last.commit + 1, ..last } })
    }

    /// Returns the connection within the transaction.
    pub(super) fn connection(&self) -> &Connection {
        &self.transaction
    }

    /// Appends a journal line.
    pub(super) fn append(&mut self, body: &str) -> Result<(), StoreError> {
        self.line(&Line { number: self.mark.line + 1, body: body.to_owned() })
    }

    /// Inserts a journal line.
    pub(super) fn line(&mut self, line: &Line) -> Result<(), StoreError> {
        let sum = rows::line_sum(line);
        let sql = format!("INSERT INTO journal ({LINE}) VALUES (?, ?, ?)");
        self.transaction.prepare_cached(&sql)?.execute(params![line.number, line.body, sum])?;
        self.mark.journal.add(sum);
        self.mark.line = self.mark.line.max(line.number);
        Ok(())
    }

    /// Inserts a job, or replaces it.
    pub(super) fn job(&mut self, row: &JobRow) -> Result<(), StoreError> {
        self.remove(row.number, false)?;
        self.remove(row.number, true)?;
        let sum = rows::job_sum(row);
        let sql = format!("INSERT INTO {} ({JOB}) VALUES (?, ?, ?, ?, ?, ?)", rows::table(row.ended));
        let values = params![row.number, row.uid, row.queue, row.array, row.body, sum];
        self.transaction.prepare_cached(&sql)?.execute(values)?;
        self.mark.jobs(row.ended).add(sum);
        self.mark.highest = self.mark.highest.max(row.number);
        Ok(())
    }

    /// Removes a job from a table, if it is there.
    fn remove(&mut self, number: i64, ended: bool) -> Result<(), StoreError> {
        let sql = format!("DELETE FROM {} WHERE number = ? RETURNING sum", rows::table(ended));
        let sum: Option<i64> =
            self.transaction.prepare_cached(&sql)?.query_row([number], |row| row.get(0)).optional()?;
        if let Some(sum) = sum {
            let damaged = |_| StoreError::damaged(DamageSite::Job(number), "its checksum is out of range");
            self.mark.jobs(ended).remove(u32::try_from(sum).map_err(damaged)?);
        }
        Ok(())
    }

    /// Inserts a named value, or replaces the one with this checksum. An empty text only removes it.
    pub(super) fn meta(
        &mut self,
        old: Option<u32>,
        named: Named,
    ) -> Result<Option<Stored<Named>>, StoreError> {
        if let Some(old) = old {
            self.mark.meta.remove(old);
        }
        if named.text.is_empty() {
            self.transaction.prepare_cached("DELETE FROM meta WHERE key = ?")?.execute([named.key])?;
            return Ok(None);
        }
        let sum = rows::meta_sum(&named);
        let sql = format!("INSERT OR REPLACE INTO meta ({META}) VALUES (?, ?, ?)");
        self.transaction.prepare_cached(&sql)?.execute(params![named.key, named.text, sum])?;
        self.mark.meta.add(sum);
        Ok(Some(Stored { row: named, sum }))
    }

    /// Commits.
    pub(super) fn finish(self) -> Result<CommitMark, StoreError> {
        schema::write_mark(&self.transaction, &self.mark)?;
        FaultPoint::Commit.pass().map_err(|error| StoreError::write(Path::new(schema::DATABASE), error))?;
        self.transaction.commit()?;
        FaultPoint::Flush.pass().map_err(StoreError::io(schema::DATABASE))?;
        Ok(self.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_shrinks_after_a_large_commit() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        let log = super::super::files::home(folder.path()).join(format!("{}-wal", schema::DATABASE));
        let size = || std::fs::metadata(&log).unwrap().len();
        let batch = |line: String| JournalBatch { lines: vec![line], ..JournalBatch::default() };
        store.commit(&batch("x".repeat(20 << 20))).unwrap();
        assert!(size() > 20 << 20);
        for _ in 0..3 {
            store.commit(&batch("small".into())).unwrap();
        }
        assert!(size() <= 8 << 20, "{} bytes", size());
    }
}
