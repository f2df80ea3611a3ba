//! Bodies and queries of requests, except for the submission.

use serde::{Deserialize, Serialize};

/// The jobs that a list contains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema, utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
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
    /// The maximum number of ended jobs. The most recent ones are listed.
    pub limit: Option<u32>,
}

/// The body of a request that cancels a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CancelRequest {
    /// Cancel all jobs of the array that starts with this number.
    pub array: bool,
}

/// The body of a request that takes the window from a job: hold, or requeue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TakeBackRequest {
    /// Move the promises to the jobs that wait for this one. Without it, such a request is refused.
    pub move_promises: bool,
}

/// The body of a request that extends a job's time limit.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ExtendRequest {
    /// The additional time, in seconds.
    pub by: f64,
}

/// The body of a request that starts or ends draining.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// Accept no new jobs. If false, accept jobs again.
    pub on: bool,
}
