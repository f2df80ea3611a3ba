//! The limits of a user, and their use.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The limits that apply to the jobs of a user.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct LimitsReport {
    /// The user.
    pub user: String,
    /// The user, by number.
    pub uid: u32,
    /// The limits; empty if there are none, as for root.
    pub limits: Vec<LimitUse>,
}

/// A limit, and its present use.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct LimitUse {
    /// The name of its table, and its field, such as `students.cpus`.
    pub limit: String,
    /// Whether it is for all users of the table together.
    pub together: bool,
    /// The unit of the numbers.
    pub unit: LimitUnit,
    /// The most that is permitted.
    pub most: f64,
    /// Its present use. Of `cpu-hours` and `gpu-hours`, it is the time of the windows that ended within the period.
    pub used: f64,
    /// Of `cpu-hours` and `gpu-hours`, the processor time of the unfinished jobs, which counts too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<f64>,
    /// Of `cpu-hours` and `gpu-hours`, the period in days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<u32>,
    /// Of `cpu-hours` and `gpu-hours`, when the earliest of the used time does not count any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub less_at: Option<Timestamp>,
}

/// The unit of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitUnit {
    /// Jobs.
    Jobs,
    /// Bytes.
    Bytes,
    /// Processors.
    Cpus,
    /// Processors times hours.
    CpuHours,
    /// GPUs.
    Gpus,
    /// GPUs times hours.
    GpuHours,
}
