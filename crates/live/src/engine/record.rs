//! What is written down of a job.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::saved::{SavedBroken, SavedEntry};
use crate::model::{Phase, Submission};

/// A job, as it is written down: all that is known of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Record {
    /// Its number.
    pub number: i64,
    /// The number of the first job of its array, and its index there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<(i64, u32)>,
    /// Whose it is.
    pub uid: u32,
    /// What people call it.
    pub name: String,
    /// The queue.
    pub queue: String,
    /// When it was submitted, wall time in microseconds since 1970.
    pub submitted: i64,
    /// For how long, ticks.
    pub time: i64,
    /// So long after the end of its window its resources are kept, ticks, as it was planned; nothing before it is in a ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<i64>,
    /// Memory, kilobytes.
    pub memory: u64,
    /// Not before, ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<i64>,
    /// Over by, ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<i64>,
    /// The jobs whose end it still waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<i64>,
    /// Where it stands.
    pub stands: Stands,
    /// As it is in the ledger, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<SavedEntry>,
    /// Its processes, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// How often it was started.
    #[serde(default)]
    pub attempts: u32,
    /// When it first ran, ticks, in its present attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<i64>,
    /// For how long of the time since then it did not run, being suspended, or ran on fewer processors than it asked for, ticks of all
    /// that it asked for; known when it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away: Option<i64>,
    /// What it was promised, and when it was told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<ToldAt>,
    /// By how much its start was later than promised, ticks, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<(i64, SavedBroken)>,
    /// What was submitted.
    #[serde(with = "shared")]
    pub submission: Arc<Submission>,
}

/// A submission is shared by the jobs of its array, in memory; on disk each has its own.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Submission;

    pub(super) fn serialize<S: Serializer>(of: &Arc<Submission>, to: S) -> Result<S::Ok, S::Error> {
        of.as_ref().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Submission>, D::Error> {
        Submission::deserialize(from).map(Arc::new)
    }
}

/// Where a job stands.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "stands", rename_all = "snake_case")]
pub enum Stands {
    /// Kept back: by its user, or because what it waits for is not for its policy to know.
    Back {
        /// By its user or an administrator.
        held: bool,
    },
    /// In the ledger.
    In,
    /// Over.
    Over(Box<Phase>),
}

/// The processes of a job.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Run {
    /// Which attempt they are.
    pub nth: u32,
    /// The processors that are theirs, by number; none while they run on what is idle.
    pub cpus: Vec<u32>,
    /// In its window; else on what is idle.
    pub critical: bool,
    /// They are stopped.
    pub stopped: bool,
    /// The window that they were told of, while it is ahead of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<ToldAhead>,
    /// They are being ended, and what is to become of the job then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
}

/// A window ahead, as the processes of a job were told of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ToldAhead {
    /// Its start, ticks.
    pub start: i64,
    /// Its end, ticks.
    pub end: i64,
    /// Its processors, by number.
    pub cpus: Vec<u32>,
}

/// What is to become of a job whose processes are being ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It is over: somebody cancelled it.
    Cancelled,
    /// It is submitted again: somebody requeued it.
    Requeued,
    /// It is in the queue again already: its policy took it off the machine.
    Displaced,
}

/// A promise, as it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ToldAt {
    /// When, wall time in microseconds since 1970.
    pub at: i64,
    /// The latest start, ticks.
    pub start: i64,
    /// What broke the one before, if it was broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<SavedBroken>,
}

impl Record {
    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        matches!(self.stands, Stands::Over(_))
    }

    /// Whether it is in the ledger.
    pub fn is_in(&self) -> bool {
        self.stands == Stands::In
    }
}
