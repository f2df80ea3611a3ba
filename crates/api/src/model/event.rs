//! Events: changes of jobs, as the daemon reports them while they happen.

use serde::{Deserialize, Serialize};

use super::{ForecastView, JobView};

/// An event of a stream of jobs. In the stream its kind is the name of the event, and the rest is its data.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum DaemonEvent {
    /// All unfinished jobs. Replaces everything that the stream sent before.
    Snapshot(JobsEvent),
    /// The jobs that were added, changed or finished since the event before.
    Change(JobsEvent),
    /// All forecasts, which were made again. Waiting jobs that are not among them have none.
    Forecasts(ForecastsEvent),
}

/// Jobs without details, by number.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct JobsEvent {
    /// The number of the commit whose state this is. It increases with each commit, also across restarts of the daemon.
    pub journal: i64,
    /// The jobs.
    pub jobs: Vec<JobView>,
    /// The numbers of jobs that ended since the event before, and that the daemon has already forgotten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<i64>,
}

/// The present forecasts of waiting jobs, by job number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct ForecastsEvent {
    /// The forecasts.
    pub forecasts: Vec<JobForecast>,
}

/// The forecast of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct JobForecast {
    /// The job number.
    pub job: i64,
    /// The likely start.
    pub forecast: ForecastView,
}
