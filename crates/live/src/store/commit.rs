//! One batch, one transaction, one `fsync`.

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::error::{Damage, Place, StoreError};
use super::mark::Mark;
use super::rows::{self, Batch, JOB, LINE, META, Row, Value};
use super::{Store, schema};

impl Store {
    /// Writes a batch, and returns when it is on disk. An empty batch costs nothing.
    ///
    /// # Errors
    /// [`StoreError::Full`] if there is no room: nothing was changed, and the store can be used on. After any other error nobody knows
    /// whether the batch is there, and the store has to be opened again.
    pub fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut writer = Writer::begin(&mut self.connection, self.mark)?;
        for body in &batch.lines {
            writer.line(body)?;
        }
        for row in &batch.rows {
            writer.job(row)?;
        }
        let mut changed = Vec::new();
        for (key, text) in &batch.meta {
            // A key that comes twice in a batch: the later one is in place of the earlier.
            let old =
                changed.iter().rev().find(|(name, _): &&(String, Value)| name == key).map(|(_, old)| old);
            let value = writer.meta(old.or_else(|| self.meta.get(key)), key, text)?;
            changed.push((key.clone(), value));
        }
        let mark = writer.finish()?;
        self.meta.extend(changed);
        self.committed(mark);
        Ok(())
    }

    /// Takes out jobs that have ended, and returns when that is on disk. Numbers that no such job has are passed over.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn forget(&mut self, numbers: &[i64]) -> Result<(), StoreError> {
        if numbers.is_empty() {
            return Ok(());
        }
        let mut writer = Writer::begin(&mut self.connection, self.mark)?;
        for number in numbers {
            writer.forget(*number, true)?;
        }
        let mark = writer.finish()?;
        self.committed(mark);
        Ok(())
    }

    /// A transaction is on disk. A mark that is behind only sees less, and the next one is in its place.
    fn committed(&mut self, mark: Mark) {
        self.mark = mark;
        let _ = self.marks.write(&self.mark);
    }
}

/// The first commit of a new state: the format.
pub(super) fn first(connection: &mut Connection) -> Result<Mark, StoreError> {
    let mut writer = Writer::begin(connection, Mark::default())?;
    writer.meta(None, schema::FORMAT_KEY, &schema::FORMAT.to_string())?;
    writer.finish()
}

/// A transaction, with the mark that it will leave.
pub(super) struct Writer<'c> {
    transaction: Transaction<'c>,
    mark: Mark,
}

impl<'c> Writer<'c> {
    pub(super) fn begin(connection: &'c mut Connection, last: Mark) -> Result<Writer<'c>, StoreError> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        Ok(Writer { transaction, mark: Mark { commit: last.commit + 1, ..last } })
    }

    fn line(&mut self, body: &str) -> Result<(), StoreError> {
        self.line_at(self.mark.line + 1, body)
    }

    /// Writes a line behind the last one, with a number that need not be the next.
    pub(super) fn line_at(&mut self, number: i64, body: &str) -> Result<(), StoreError> {
        let Mark { commit, chain, .. } = self.mark;
        let sum = rows::line_sum(number, commit, chain, body);
        let sql = format!("INSERT INTO journal ({LINE}) VALUES (?, ?, ?, ?, ?)");
        self.transaction.prepare_cached(&sql)?.execute(params![number, commit, chain, body, sum])?;
        (self.mark.line, self.mark.chain) = (number, sum);
        self.mark.lines += 1;
        Ok(())
    }

    pub(super) fn job(&mut self, row: &Row) -> Result<(), StoreError> {
        self.forget(row.number, false)?;
        self.forget(row.number, true)?;
        let (made, sum) = (self.mark.commit, rows::job_sum(row, self.mark.commit));
        let sql = format!("INSERT INTO {} ({JOB}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows::table(row.ended));
        let values = params![row.number, made, row.uid, row.queue, row.array, row.body, sum];
        self.transaction.prepare_cached(&sql)?.execute(values)?;
        self.mark.jobs(row.ended).add(sum);
        Ok(())
    }

    /// Takes a job's row out of a table, if it is there.
    fn forget(&mut self, number: i64, ended: bool) -> Result<(), StoreError> {
        let sql = format!("DELETE FROM {} WHERE number = ? RETURNING sum", rows::table(ended));
        let sum: Option<i64> =
            self.transaction.prepare_cached(&sql)?.query_row([number], |row| row.get(0)).optional()?;
        if let Some(sum) = sum {
            let damaged = || Damage::new(Place::Job(number), "its checksum is no checksum");
            let sum = u32::try_from(sum).map_err(|_| StoreError::Damaged(vec![damaged()]))?;
            self.mark.jobs(ended).remove(sum);
        }
        Ok(())
    }

    pub(super) fn meta(&mut self, old: Option<&Value>, key: &str, text: &str) -> Result<Value, StoreError> {
        let made = self.mark.commit;
        // The rows are never deleted: their count is the last number.
        let number = old.map_or_else(|| self.mark.meta.count.cast_signed() + 1, |old| old.number);
        let sum = rows::meta_sum(number, made, key, text);
        let sql = format!("INSERT OR REPLACE INTO meta ({META}) VALUES (?, ?, ?, ?, ?)");
        self.transaction.prepare_cached(&sql)?.execute(params![number, made, key, text, sum])?;
        if let Some(old) = old {
            self.mark.meta.remove(old.sum);
        }
        self.mark.meta.add(sum);
        Ok(Value { number, text: text.to_owned(), sum })
    }

    pub(super) fn finish(self) -> Result<Mark, StoreError> {
        schema::write_mark(&self.transaction, &self.mark)?;
        self.transaction.commit()?;
        Ok(self.mark)
    }
}
