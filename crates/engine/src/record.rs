//! What is written down of a job.

use std::sync::Arc;

use miserly_api::model::{Phase, Submission};
use miserly_core::{Kind, Request, Resources, Span, Terms, Time};
use serde::{Deserialize, Serialize};

use crate::{Attempt, SavedBroken, SavedEntry, Setup};

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
    /// Returns whether the job has finished.
    pub fn is_over(&self) -> bool {
        matches!(self.stands, Stands::Over(_))
    }

    /// Returns whether the job is in the ledger of its queue.
    pub fn is_in(&self) -> bool {
        self.stands == Stands::In
    }

    /// Returns the attempt that is alive.
    pub(crate) fn attempt(&self) -> Option<Attempt> {
        self.run.as_ref().map(|Run { nth, .. }| Attempt { job: self.number, nth: *nth })
    }

    /// Returns the time limit of a job that is time-sliced.
    pub(crate) fn limit(&self) -> Span {
        Span::from_ticks(self.time)
    }

    /// Returns the remaining time in which the job may run.
    pub(crate) fn left(&self, now: Time) -> Span {
        self.entry.as_ref().map_or(Span::ZERO, |entry| entry.entry().left(now, self.submission.cpus.into()))
    }

    /// Returns the time for which the job's resources are planned: its time limit and the cleanup time.
    pub(crate) fn planned(&self, today: Span) -> Span {
        Span::from_ticks(self.time) + self.handover(today)
    }

    /// Returns the cleanup time after the job's window: as it was planned, or else `today`.
    pub(crate) fn handover(&self, today: Span) -> Span {
        self.handover.map_or(today, Span::from_ticks)
    }

    /// Returns the grace period of the job. It is at most a tenth of the time limit.
    pub(crate) fn grace(&self, longest: Span) -> Span {
        longest.min(Span::from_ticks(self.time / 10))
    }

    /// Returns the request to the policy.
    pub(crate) fn request(&self, setup: &Setup, queue: usize, at: Time, begin: Option<Time>) -> Request {
        let demand = Resources::cpus(self.submission.cpus).with(Kind::Memory, self.memory);
        let terms = Terms {
            begin,
            // The job is over by its deadline. Only its resources are kept longer.
            deadline: self.deadline.map(|at| Time::from_ticks(at) + self.handover(setup.handover)),
            in_window_only: self.submission.no_opportunistic || setup.early.is_none(),
            restartable: self.submission.restartable,
        };
        let user = Some(self.uid);
        let queue = u32::try_from(queue).ok();
        Request { user, queue, terms, ..Request::new(self.number, at, self.planned(setup.handover), demand) }
    }
}

#[cfg(test)]
impl Record {
    /// Returns a job that asks for nothing.
    pub(crate) fn for_tests(number: i64, stands: Stands) -> Record {
        Record {
            number,
            array: None,
            uid: 0,
            name: "job".into(),
            queue: "batch".into(),
            submitted: 0,
            time: 0,
            handover: None,
            memory: 0,
            begin: None,
            deadline: None,
            after: vec![],
            stands,
            entry: None,
            run: None,
            attempts: 0,
            started: None,
            away: None,
            told: vec![],
            late: None,
            submission: Arc::default(),
        }
    }
}
