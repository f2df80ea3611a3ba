//! The finished jobs of a daemon, read from its state for other programs.

use std::ops::ControlFlow;
use std::path::Path;

use jiff::Timestamp;
use miserly_api::model::{Exit, KilledBy, Phase, StartReason};
use miserly_core::Span;
use miserly_engine::{ArrayMember, JobRow, JobState, JournalLine, QueueLine, Record, Usage, wall_span};

use crate::store::{History, StoreError};

/// A finished job, with the data that other programs use.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedJob {
    /// The number of the job.
    pub number: i64,
    /// Its place in an array.
    pub array: Option<ArrayMember>,
    /// The name of the job.
    pub name: String,
    /// The owner, by number.
    pub uid: u32,
    /// The queue.
    pub queue: String,
    /// The requested processors.
    pub cpus: u64,
    /// The requested memory, kilobytes.
    pub memory: u64,
    /// The time limit.
    pub time: Span,
    /// The submission.
    pub submitted: Timestamp,
    /// The earliest start that its user wanted.
    pub begin: Option<Timestamp>,
    /// The start; `None` if it never started, or the start is unknown.
    pub started: Option<Timestamp>,
    /// The reason of its last start in its window.
    pub start_reason: Option<StartReason>,
    /// The end.
    pub ended: Timestamp,
    /// The time between start and end in which it did not run, because it was suspended. A run on
    /// fewer processors than requested counts as the time that it would have taken on all of them.
    pub suspended_time: Span,
    /// How often its command was begun, as far as that is known.
    pub runs: u32,
    /// The resources that all its attempts used; `None` if they are unknown.
    pub usage: Option<Usage>,
    /// The processors that it had at its end, by number, as rising ranges with both ends; none if they are unknown.
    pub cpu_ranges: Vec<(u32, u32)>,
    /// The outcome.
    pub outcome: JobOutcome,
}

/// The outcome of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// It exited by itself.
    Done(Exit),
    /// It was killed.
    Killed(KilledBy),
    /// It could not be run.
    Failed,
    /// Its end is unknown.
    Lost,
}

impl FinishedJob {
    /// Returns the run time; `None` if it never started, or the start is unknown.
    pub fn runtime(&self) -> Option<Span> {
        let runtime = |started| (wall_span(started, self.ended) - self.suspended_time).max(Span::ZERO);
        self.started.map(runtime)
    }
}

impl JobOutcome {
    /// Returns the written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            JobOutcome::Done(_) => "done",
            JobOutcome::Killed(KilledBy::Time) => "killed: time",
            JobOutcome::Killed(KilledBy::User) => "killed: user",
            JobOutcome::Killed(KilledBy::Shutdown) => "killed: shutdown",
            JobOutcome::Killed(KilledBy::Memory) => "killed: memory",
            JobOutcome::Killed(KilledBy::Idle) => "killed: idle",
            JobOutcome::Failed => "failed",
            JobOutcome::Lost => "lost",
        }
    }
}

/// The reason why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The state cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A job is not readable by this version.
    #[error(
        "job {number} of the state is not one that this version knows how to read: {source}; use the version that wrote it"
    )]
    Unknown {
        /// The job.
        number: i64,
        /// The error of the parser.
        source: serde_json::Error,
    },
}

/// Returns the most processors that jobs had in any configuration of the daemon, over all queues.
/// Returns `None` if the journal contains no configuration.
///
/// # Errors
/// If there is no state in `folder`, or it cannot be read.
pub fn procs(folder: &Path) -> Result<Option<u64>, StoreError> {
    let mut most = None;
    History::open(folder)?.journal(1, &mut |line| {
        let of = |queue: &QueueLine| queue.pool.iter().map(|step| step.1[0]).max().unwrap_or(0);
        match serde_json::from_str(&line.body) {
            Ok(JournalLine::Began { queues, .. }) => most = most.max(Some(queues.iter().map(of).sum())),
            // Earlier lines may have been removed.
            Ok(JournalLine::Checkpoint(checkpoint)) => {
                most = most.max(Some(checkpoint.queues.iter().map(|queue| of(&queue.queue)).sum()));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    Ok(most)
}

/// Returns the finished jobs of a state, by number. It works with or without a daemon and changes
/// nothing.
///
/// # Errors
/// If there is no state in `folder`, it cannot be read, or a job is damaged or of a later version.
pub fn finished_jobs(folder: &Path) -> Result<Vec<FinishedJob>, HistoryError> {
    let mut jobs = Vec::new();
    let mut unknown = None;
    let mut take = |row: JobRow| {
        if !row.ended {
            return ControlFlow::Break(());
        }
        match serde_json::from_str::<Record>(&row.body) {
            Ok(record) => jobs.extend(finished(record)),
            Err(source) => {
                unknown = Some(HistoryError::Unknown { number: row.number, source });
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    };
    History::open(folder)?.jobs(&mut take)?;
    unknown.map_or(Ok(jobs), Err)
}

fn finished(record: Record) -> Option<FinishedJob> {
    let (runs, time) = (record.runs(), record.own_limit());
    let JobState::Finished(phase) = record.state else { return None };
    let (started, outcome) = match *phase {
        Phase::Done { start, exit, .. } => (Some(start), JobOutcome::Done(exit)),
        Phase::Killed { start, by, .. } => (start, JobOutcome::Killed(by)),
        Phase::Failed { .. } => (None, JobOutcome::Failed),
        _ => (None, JobOutcome::Lost),
    };
    Some(FinishedJob {
        number: record.number,
        array: record.array,
        name: record.name.to_string(),
        uid: record.uid,
        queue: record.queue.to_string(),
        cpus: record.submission.cpus,
        memory: record.memory.kilobytes(),
        time,
        submitted: record.submitted,
        begin: record.submission.begin,
        started,
        start_reason: record.start_reason,
        ended: phase.ended()?,
        suspended_time: record.suspended_time.unwrap_or(Span::ZERO),
        runs,
        usage: record.usage.total(),
        cpu_ranges: phase.cpus(),
        outcome,
    })
}
