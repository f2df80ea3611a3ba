//! Persistent state: the trait that stores it, and the units in which it is stored.

mod checkpoint;

pub(crate) mod checkpoint_schedule;

mod effects;

mod line;

mod memory;

pub(crate) mod pruning;

pub(crate) mod retry;

use std::ops::ControlFlow;

use jiff::Timestamp;
use serde::Serialize;

pub use checkpoint::{CheckpointLine, QueueCheckpoint};
pub use line::{
    AmendedLine, EffectLine, EndedLine, JournalLine, OpportunisticLine, PoolException, PoolStep, QueueLine,
    RoundLine,
};
pub use memory::{JournalContents, MemoryJournal};

/// Durable storage of jobs, journal lines and named values.
///
/// # Contract
/// [`commit`](Journal::commit) is atomic and durable: when it returns, all of the batch survives a crash. When it fails with
/// [`JournalError::Full`], nothing of the batch was stored and the journal can be used on.
pub trait Journal {
    /// Returns the jobs that have not finished, by number.
    ///
    /// A row that cannot be read is among them, with its [`problem`](JobRow::problem). So it is with every method that returns rows.
    ///
    /// # Errors
    /// If the state is damaged or cannot be read. So it is with every method that reads.
    fn live_jobs(&self) -> Result<Vec<JobRow>, JournalError>;

    /// Returns a job, finished or not.
    ///
    /// # Errors
    /// As [`live_jobs`](Journal::live_jobs).
    fn job(&self, number: i64) -> Result<Option<JobRow>, JournalError>;

    /// Returns the finished jobs that a filter admits, by number.
    ///
    /// # Errors
    /// As [`live_jobs`](Journal::live_jobs).
    fn ended_jobs(&self, filter: &EndedFilter) -> Result<Vec<JobRow>, JournalError>;

    /// Returns at most `limit` finished jobs from number `from` on, by number.
    ///
    /// # Errors
    /// As [`live_jobs`](Journal::live_jobs).
    fn ended_from(&self, from: i64, limit: u32) -> Result<Vec<JobRow>, JournalError>;

    /// Returns the highest number of a stored job, or 0.
    ///
    /// # Errors
    /// As [`live_jobs`](Journal::live_jobs).
    fn highest_job(&self) -> Result<i64, JournalError>;

    /// Returns the number of the last change of the state. Each commit increases it, also across restarts.
    fn last_commit(&self) -> i64;

    /// Returns a named value.
    ///
    /// # Errors
    /// As [`live_jobs`](Journal::live_jobs).
    fn value(&self, key: &str) -> Result<Option<String>, JournalError>;

    /// Passes the journal's lines to `visit`, oldest first, until it breaks.
    ///
    /// # Errors
    /// As [`live_jobs`](Journal::live_jobs).
    fn visit_lines(&self, visit: &mut dyn FnMut(&str) -> ControlFlow<()>) -> Result<(), JournalError>;

    /// Stores a batch. Returns when the batch is durable.
    ///
    /// The checkpoint of a batch seals the segment of the lines before it and begins the next one.
    ///
    /// # Errors
    /// [`JournalError::Full`] if nothing was stored. After any other error the outcome is unknown and the journal must be
    /// opened again.
    fn commit(&mut self, batch: JournalBatch) -> Result<(), JournalError>;

    /// Removes finished jobs. Numbers of other jobs are ignored.
    ///
    /// # Errors
    /// As [`commit`](Journal::commit).
    fn forget(&mut self, numbers: &[i64]) -> Result<(), JournalError>;

    /// Removes the lines of the oldest sealed segment if it was sealed before this wall time. Returns
    /// whether the next one was, too.
    ///
    /// # Errors
    /// As [`commit`](Journal::commit).
    fn forget_segment(&mut self, before: Timestamp) -> Result<bool, JournalError>;
}

/// The finished jobs in a journal, for readers.
pub trait EndedJobs {
    /// Returns a finished job. It may return an unfinished one.
    ///
    /// # Errors
    /// As [`Journal::live_jobs`]. So it is with every method.
    fn job(&self, number: i64) -> Result<Option<JobRow>, JournalError>;

    /// Returns the finished jobs that a filter admits, by number.
    ///
    /// # Errors
    /// As [`job`](EndedJobs::job).
    fn ended_jobs(&self, filter: &EndedFilter) -> Result<Vec<JobRow>, JournalError>;

    /// Returns at most `limit` finished jobs from number `from` on, by number.
    ///
    /// # Errors
    /// As [`job`](EndedJobs::job).
    fn ended_from(&self, from: i64, limit: u32) -> Result<Vec<JobRow>, JournalError>;
}

impl<J: Journal> EndedJobs for J {
    fn job(&self, number: i64) -> Result<Option<JobRow>, JournalError> {
        Journal::job(self, number)
    }

    fn ended_jobs(&self, filter: &EndedFilter) -> Result<Vec<JobRow>, JournalError> {
        Journal::ended_jobs(self, filter)
    }

    fn ended_from(&self, from: i64, limit: u32) -> Result<Vec<JobRow>, JournalError> {
        Journal::ended_from(self, from, limit)
    }
}

/// A job as the journal stores it: the keys of a search, and the record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRow {
    /// The number of the job.
    pub number: i64,
    /// Whether the job has finished.
    pub ended: bool,
    /// The user, by number.
    pub uid: u32,
    /// The queue.
    pub queue: String,
    /// The number of the first job of the array.
    pub array: Option<i64>,
    /// The [`Record`](crate::Record), as JSON.
    pub body: String,
    /// The problem of a row that cannot be read; the fields beside the number may be wrong then, and the body is empty. Such a row is
    /// never written.
    pub problem: Option<String>,
}

impl JobRow {
    /// Returns the row with the problem of its content.
    #[must_use]
    pub(crate) fn unreadable(self, problem: String) -> JobRow {
        JobRow { problem: self.problem.or(Some(problem)), ..self }
    }
}

/// A set of changes that is stored as a whole or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalBatch {
    /// Lines to append, in order.
    pub lines: Vec<String>,
    /// The checkpoint to append after them.
    pub checkpoint: Option<Checkpoint>,
    /// Jobs, which replace their stored rows.
    pub rows: Vec<JobRow>,
    /// Named values, which replace their stored values. An empty text removes the value.
    pub values: Vec<(String, String)>,
}

impl JournalBatch {
    /// Returns whether the batch changes nothing.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.checkpoint.is_none() && self.rows.is_empty() && self.values.is_empty()
    }
}

/// A line that begins a segment of the journal: a replay can begin with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The [`CheckpointLine`], as JSON.
    pub line: String,
    /// The wall time.
    pub wall: Timestamp,
}

/// A search among the finished jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndedFilter {
    /// Only jobs of this user.
    pub uid: Option<u32>,
    /// Only jobs of this queue.
    pub queue: Option<String>,
    /// Only jobs of this array, or the job of that number.
    pub array: Option<i64>,
    /// The maximum number of jobs. Those with the highest numbers are returned.
    pub limit: Option<u32>,
}

/// Returns the JSON of a value to store.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, JournalError> {
    serde_json::to_string(value).map_err(|error| JournalError::Failed(error.into()))
}

type Source = Box<dyn std::error::Error + Send + Sync>;

/// The reason why the journal cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// There is no space. Nothing was stored, and the commit may be tried again.
    #[error(transparent)]
    Full(Source),
    /// The stored state is damaged.
    #[error(transparent)]
    Damaged(Source),
    /// Any other failure. After a commit it is unknown whether the batch is stored.
    #[error(transparent)]
    Failed(Source),
}
