//! The store as the engine's journal.

use std::ops::ControlFlow;

use miserly_engine::{EndedFilter, JobRow, Journal, JournalBatch, JournalError};

use super::{Batch, Row, Store, StoreError};

impl Journal for Store {
    fn live_jobs(&self) -> Result<Vec<JobRow>, JournalError> {
        Ok(Store::live_jobs(self)?.into_iter().map(JobRow::from).collect())
    }

    fn job(&self, number: i64) -> Result<Option<JobRow>, JournalError> {
        Ok(Store::job(self, number)?.map(JobRow::from))
    }

    fn ended_jobs(&self, filter: &EndedFilter) -> Result<Vec<JobRow>, JournalError> {
        let EndedFilter { uid, queue, array, limit } = filter.clone();
        let filter = super::EndedFilter { uid, queue, array, limit };
        Ok(self.jobs(Some(&filter))?.into_iter().map(JobRow::from).collect())
    }

    fn ended_from(&self, from: i64, limit: u32) -> Result<Vec<JobRow>, JournalError> {
        Ok(Store::ended_from(self, from, limit)?.into_iter().map(JobRow::from).collect())
    }

    fn highest_job(&self) -> Result<i64, JournalError> {
        Ok(Store::highest_job(self))
    }

    fn value(&self, key: &str) -> Result<Option<String>, JournalError> {
        Ok(self.meta(key)?)
    }

    fn visit_lines(&self, visit: &mut dyn FnMut(&str) -> ControlFlow<()>) -> Result<(), JournalError> {
        Ok(self.journal(1, &mut |line| visit(&line.body))?)
    }

    fn commit(&mut self, batch: JournalBatch) -> Result<(), JournalError> {
        let JournalBatch { lines, rows, values } = batch;
        let rows = rows.into_iter().map(Row::from).collect();
        Ok(Store::commit(self, &Batch { lines, rows, meta: values })?)
    }

    fn forget(&mut self, numbers: &[i64]) -> Result<(), JournalError> {
        Ok(Store::forget(self, numbers)?)
    }
}

impl From<Row> for JobRow {
    fn from(row: Row) -> JobRow {
        let Row { number, ended, uid, queue, array, body } = row;
        JobRow { number, ended, uid, queue, array, body }
    }
}

impl From<JobRow> for Row {
    fn from(row: JobRow) -> Row {
        let JobRow { number, ended, uid, queue, array, body } = row;
        Row { number, ended, uid, queue, array, body }
    }
}

impl From<StoreError> for JournalError {
    fn from(error: StoreError) -> JournalError {
        match error {
            StoreError::Full => JournalError::Full(error.into()),
            StoreError::Damaged(_) => JournalError::Damaged(error.into()),
            _ => JournalError::Failed(error.into()),
        }
    }
}
