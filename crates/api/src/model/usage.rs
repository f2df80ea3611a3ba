//! The resources that a job used.

use serde::{Deserialize, Serialize};

/// The resources that a job used in the attempts that have ended.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct JobUsage {
    /// All attempts together: sums, and the highest memory.
    pub total: Usage,
    /// The latest attempts, at most 16, in order.
    pub attempts: Vec<AttemptUsage>,
}

/// The resources that an attempt used.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct AttemptUsage {
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The resources.
    pub usage: Usage,
}

/// Used resources.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct Usage {
    /// The time on processors in user mode, in seconds.
    pub user: f64,
    /// The time on processors in the kernel, in seconds.
    pub system: f64,
    /// The highest use of memory, in bytes: of all processes together, or of a single one (`source`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_peak: Option<u64>,
    /// Bytes read from block devices; absent if the kernel does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_read: Option<u64>,
    /// Bytes written to block devices; absent if the kernel does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_written: Option<u64>,
    /// How often the job was stopped while it ran.
    pub stops: u32,
    /// The origin of the figures.
    pub source: UsageSource,
}

/// The origin of the figures of used resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageSource {
    /// The control groups of all attempts. They count every process.
    ControlGroup,
    /// Processes that the shim reaped, in one attempt at least. Their memory is that of the largest process. Processes whose
    /// parents ignore the ends of their children are missing.
    Processes,
}
