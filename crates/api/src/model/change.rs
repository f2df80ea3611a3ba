//! Changes of jobs, and the promises that they move.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{RawVariable, Window};

/// A change of a waiting job. Fields that are absent keep their values.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Modification {
    /// The new name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The new number of processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u64>,
    /// The new memory, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The new number of GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u64>,
    /// The new type of the GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// The new time limit, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<f64>,
    /// The new queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The new earliest start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin: Option<Timestamp>,
    /// The new deadline of the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The new longest wait, in seconds, from the submission or from the earliest start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_within: Option<f64>,
    /// Whether the job may run on past its time limit while no other job needs its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overrun_if_idle: Option<bool>,
    /// The limits on its time that the job loses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<TimeBound>,
    /// The new environment, in place of the whole present one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<Box<NewEnvironment>>,
    /// Another waiting job of the same user and queue, whose place the job takes. Those between them move back by one place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<i64>,
}

/// The environment that a job gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NewEnvironment {
    /// The variables that are UTF-8 text.
    pub text: BTreeMap<String, String>,
    /// The others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bytes: Vec<RawVariable>,
}

/// The body of a request that changes a waiting job.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModifyRequest {
    /// The changes.
    pub changes: Modification,
    /// Move the promises to the jobs that wait for this one. Without it, such a request is refused.
    pub move_promises: bool,
}

/// A bound on the time of a job that its user has set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimeBound {
    /// The earliest start.
    Begin,
    /// The deadline of the end.
    Deadline,
    /// The longest wait.
    StartWithin,
}

/// A change of a job whose effects on promises are asked for.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobChange {
    /// End or withdraw it. A running job is taken as over at once.
    Cancel,
    /// Hold it.
    Hold,
    /// Release it.
    Release,
    /// End its attempt, and run it again.
    Requeue,
    /// Extend its time limit by this many seconds.
    Extend(f64),
    /// Change its request.
    Modify(Box<Modification>),
}

/// The promises that a change of a job moves.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct Moves {
    /// The job.
    pub job: i64,
    /// Its window without the change, if one is promised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Window>,
    /// Its window with the change, if one is promised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Window>,
    /// The other jobs whose promises move, by number; at most [`Moves::SHOWN`].
    pub moved: Vec<MovedPromise>,
    /// The number of all of them.
    pub count: u64,
    /// The jobs that would end without a run, because they wait for the success of this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<i64>,
}

impl Moves {
    /// The most moved promises in one reply.
    pub const SHOWN: usize = 1000;
}

/// The promise of another job that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct MovedPromise {
    /// The job.
    pub job: i64,
    /// The latest start without the change.
    pub before: Timestamp,
    /// The latest start with the change; absent if none is promised then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Timestamp>,
}
