//! Steps of jobs: tasks that `srun` starts inside a job.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Exit;

/// A step of the present or last run of a job.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct StepView {
    /// Its number in the run, from 0.
    pub step: u32,
    /// Its name: that of its program.
    pub name: String,
    /// The tasks.
    pub tasks: u64,
    /// The processors of all its tasks.
    pub cpus: u64,
    /// The start.
    pub started: Timestamp,
    /// Its time limit, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The end; absent if it runs, or ended with its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<StepEnd>,
}

/// The end of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct StepEnd {
    /// The instant.
    pub at: Timestamp,
    /// The worst exit status of its tasks.
    pub exit: Exit,
    /// Whether its time limit ended it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_time: bool,
}

/// The body of a request that records the start of a step.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginStepRequest {
    /// Its name, of which the first 128 characters are kept.
    pub name: String,
    /// The tasks.
    pub tasks: u64,
    /// The processors of all its tasks.
    pub cpus: u64,
    /// Its time limit, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The body of a request that records the end of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndStepRequest {
    /// The number of the step.
    pub step: u32,
    /// The worst exit status of its tasks.
    pub exit: Exit,
    /// Whether it was ended at its time limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_time: bool,
}

/// The number of a step in the run of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct StepNumber {
    /// The number, from 0.
    pub step: u32,
}
