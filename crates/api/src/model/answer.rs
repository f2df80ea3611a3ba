//! What the daemon answers.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Window;

/// What became of a submission.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Submitted {
    /// The jobs, in the order of their indexes; one, unless it is an array.
    pub jobs: Vec<Accepted>,
}

/// A job that was accepted, and is on disk.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Accepted {
    /// Its number.
    pub number: i64,
    /// Its index, in an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// What it is promised; nothing, where its queue's policy promises nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<Window>,
    /// It has started.
    pub started: bool,
}

/// What a submission would be promised now. Nobody is bound by it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Quote {
    /// The windows, in the order of the indexes; none, where the queue's policy promises nothing.
    pub windows: Vec<Option<Window>>,
}

/// A request that was carried out, where there is nothing else to say.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Handed {
    /// The jobs that it was carried out on.
    pub jobs: Vec<i64>,
}

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, thiserror::Error)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[error("{message}")]
pub struct Problem {
    /// What kind of problem it is.
    pub code: ProblemCode,
    /// What was wrong, where, and what to do.
    pub message: String,
    /// The field of the request that it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The job that would suffer, or that stands in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<i64>,
}

impl Problem {
    /// A problem that is about nothing in particular.
    pub fn new(code: ProblemCode, message: impl Into<String>) -> Problem {
        Problem { code, message: message.into(), field: None, job: None }
    }

    /// A problem with a field of the request.
    pub fn with_field(field: &str, message: impl Into<String>) -> Problem {
        Problem { field: Some(field.into()), ..Problem::new(ProblemCode::Malformed, message) }
    }
}

/// The kinds of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProblemCode {
    /// The request makes no sense.
    Malformed,
    /// It makes sense, and is refused: too large, no window, a deadline that cannot be met, a promise that would break.
    Refused,
    /// There is no such job, queue, or path.
    NotFound,
    /// It is somebody else's.
    Forbidden,
    /// The job is not in a state in which this can be done.
    Conflict,
    /// The daemon is going away, or accepts nothing new.
    Unavailable,
    /// It cannot be written down, so it is not done: the disk is full, or fails.
    Storage,
    /// A defect of the daemon.
    Internal,
}

/// How the daemon is.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Status {
    /// The version of the daemon.
    pub version: String,
    /// Its process.
    pub pid: i32,
    /// Since when it runs.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub since: Timestamp,
    /// Now, by its clock.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub now: Timestamp,
    /// Where its state is.
    pub state: String,
    /// The configuration file; none, where it runs without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// It accepts no new jobs.
    pub draining: bool,
    /// The processors of the machine that are online.
    pub cpus: u64,
    /// The queues, in order.
    pub queues: Vec<QueueStatus>,
    /// What it cannot enforce here.
    pub unenforced: Vec<Unenforced>,
    /// Promises that were given since it was first started.
    pub promises: u64,
    /// Promises that were broken, for whatever reason.
    pub broken: u64,
    /// Starts that were late.
    pub late: u64,
}

/// Something that is promised and cannot be enforced.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Unenforced {
    /// A word for it.
    pub what: String,
    /// What may happen.
    pub sentence: String,
}

/// A queue at this moment.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueStatus {
    /// Its name.
    pub name: String,
    /// Its policy, as it is written.
    pub policy: String,
    /// To whom the policy promises a start: nobody, the head, every job.
    pub promises: String,
    /// The processors of its pool now.
    pub cpus: u64,
    /// The memory of its pool now, bytes; none, where it is not accounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Processors that jobs in their windows hold.
    pub cpus_held: u64,
    /// Memory that jobs in their windows hold, bytes.
    pub memory_held: u64,
    /// Jobs in their windows.
    pub running: u64,
    /// Jobs that wait.
    pub waiting: u64,
}

/// The pools, over time.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Pools {
    /// Each queue's pool, in order.
    pub pools: Vec<Pool>,
}

/// A pool from now on.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Pool {
    /// The queue.
    pub queue: String,
    /// The processors that it has at most.
    pub cpus: u64,
    /// From when on how much is free: as far as windows are given, and a day ahead at least.
    pub slices: Vec<Slice>,
}

/// From when on how much of a pool is free, as far as windows are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Slice {
    /// From when on.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub from: Timestamp,
    /// Processors of the pool.
    pub cpus: u64,
    /// Processors that nobody has a window on.
    pub cpus_free: u64,
    /// Memory that nobody has a window on, bytes.
    pub memory_free: u64,
}
