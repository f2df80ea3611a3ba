//! Bodies and queries of requests, except for the submission.

use serde::{Deserialize, Serialize};

/// The name of the protocol after the response to a client that attaches to a job.
pub const ATTACH_PROTOCOL: &str = "miserly-relay";

/// The header of a part of an output file with the length of the whole file.
pub const OUTPUT_LENGTH: &str = "miserly-length";

/// The most bytes of a part of an output file.
pub const OUTPUT_PART: u64 = 1 << 20;

/// A part of an output file of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct OutputRequest {
    /// The first byte.
    #[serde(default)]
    pub from: u64,
    /// Whether it is the file of the standard error.
    #[serde(default)]
    pub error: bool,
}

/// The jobs that a list contains.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema, utoipa::IntoParams,
)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// Include jobs that have ended.
    pub all: bool,
    /// Only jobs of this user, by number.
    pub uid: Option<u32>,
    /// Only jobs of this queue.
    pub queue: Option<String>,
    /// Only jobs of this array, or the job of that number.
    pub array: Option<i64>,
    /// The maximum number of jobs, at most 10000. The oldest ended ones are left out first. By
    /// default it is 1000 of the unfinished jobs, and with `all` 1000 of the ended ones.
    pub limit: Option<u32>,
    /// Only jobs with higher numbers, lowest first: the next page of a list.
    pub after: Option<i64>,
    /// Include the commands, the paths and the usage of jobs that the caller may read.
    pub details: bool,
}

/// The sizes of lists.
pub mod listing {
    /// The number of jobs in a list without a limit.
    pub const PAGE: u32 = 1000;
    /// The maximum number of jobs in a list.
    pub const MOST: u32 = 10_000;
}

/// The body of a request that cancels a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CancelRequest {
    /// Cancel all jobs of the array that starts with this number.
    pub array: bool,
}

/// The body of a request that takes the window from a job: hold, or requeue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TakeBackRequest {
    /// Move the promises to the jobs that wait for this one. Without it, such a request is refused.
    pub move_promises: bool,
}

/// The body of a request that extends a job's time limit.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendRequest {
    /// The additional time, in seconds.
    pub by: f64,
}

/// The body of a request that changes the processors that a resizable job wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResizeRequest {
    /// The most processors that it wants from now on.
    pub cpus: u64,
}

/// The body of a request that starts or ends draining.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// Accept no new jobs. If false, accept jobs again.
    pub on: bool,
}

/// The body of a request that withdraws the shims that wait for windows, or launches them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldStartsRequest {
    /// Start nothing without the daemon. If false, promised jobs start without it again.
    pub on: bool,
}

/// The header of a request for events by a client that sends the mails of jobs.
pub const SENDS_MAIL: &str = "miserly-sends-mail";
