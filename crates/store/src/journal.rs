//! The store as the engine's journal.

use std::io;
use std::ops::ControlFlow;

use jiff::Timestamp;
use miserly_engine::{EndedFilter, JobRow, Journal, JournalBatch, JournalError};

use super::{Store, StoreError, schema};
use crate::crash_point::{self, CrashPoint};

impl Journal for Store {
    fn live_jobs(&self) -> Result<Vec<JobRow>, JournalError> {
        Ok(Store::live_jobs(self)?)
    }

    fn job(&self, number: i64) -> Result<Option<JobRow>, JournalError> {
        Ok(Store::job(self, number)?)
    }

    fn ended_jobs(&self, filter: &EndedFilter) -> Result<Vec<JobRow>, JournalError> {
        Ok(Store::ended_jobs(self, filter)?)
    }

    fn ended_from(&self, from: i64, limit: u32) -> Result<Vec<JobRow>, JournalError> {
        Ok(Store::ended_from(self, from, limit)?)
    }

    fn highest_job(&self) -> Result<i64, JournalError> {
        Ok(Store::highest_job(self))
    }

    fn last_commit(&self) -> i64 {
        Store::last_commit(self)
    }

    fn value(&self, key: &str) -> Result<Option<String>, JournalError> {
        Ok(self.meta(key).map(str::to_owned))
    }

    fn visit_lines(&self, visit: &mut dyn FnMut(&str) -> ControlFlow<()>) -> Result<(), JournalError> {
        Ok(self.journal(1, &mut |line| visit(&line.body))?)
    }

    fn commit(&mut self, batch: JournalBatch) -> Result<(), JournalError> {
        crash_point::pass(CrashPoint::BeforeCommit);
        Store::commit(self, &batch)?;
        crash_point::pass(CrashPoint::AfterCommit);
        Ok(())
    }

    fn forget(&mut self, numbers: &[i64]) -> Result<(), JournalError> {
        Ok(Store::forget(self, numbers)?)
    }

    fn forget_segment(&mut self, before: Timestamp) -> Result<bool, JournalError> {
        Ok(Store::forget_segment(self, before)?)
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

impl From<JournalError> for StoreError {
    /// Returns the error of the store in that of the journal.
    fn from(error: JournalError) -> StoreError {
        let (JournalError::Full(source) | JournalError::Damaged(source) | JournalError::Failed(source)) =
            error;
        match source.downcast::<StoreError>() {
            Ok(error) => *error,
            Err(other) => StoreError::io(schema::DATABASE)(io::Error::other(other)),
        }
    }
}
