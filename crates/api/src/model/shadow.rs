//! Shadows: second policies beside those of the queues.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The jobs of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub struct ShadowFilter {
    /// The earliest submission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// The shadows of all queues.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct ShadowReport {
    /// The shadows, by queue.
    pub shadows: Vec<ShadowView>,
}

/// A second policy on the events of a queue, with the runtimes that came out on the machine.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct ShadowView {
    /// The queue.
    pub queue: String,
    /// The policy of the shadow.
    pub policy: String,
    /// The policy of the queue on the machine, once the shadow has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_policy: Option<String>,
    /// The instant at which the shadow was configured.
    pub since: Timestamp,
    /// The instant that the shadow has reached. It is behind the machine where a job runs in the shadow first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The number of rounds with events that the shadow has not reached.
    pub behind: u64,
    /// The job that the shadow waits for: it runs in the shadow, and its runtime is not known yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<i64>,
    /// The reason why the shadow does not go on, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// All jobs together.
    pub all: ShadowGroup,
    /// By day of the submission, in the time zone of the daemon.
    pub days: Vec<ShadowGroup>,
    /// By user. A user who is no operator gets the own row only.
    pub users: Vec<ShadowGroup>,
    /// By number of processors.
    pub sizes: Vec<ShadowGroup>,
}

/// Jobs that started on the machine and in the shadow. A mean is absent without jobs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct ShadowGroup {
    /// The day, the user's name, or the range of processors.
    pub name: String,
    /// The user, by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The number of jobs.
    pub jobs: u64,
    /// The mean wait on the machine, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_wait: Option<f64>,
    /// The mean wait in the shadow, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow_mean_wait: Option<f64>,
    /// The mean bounded slowdown on the machine, with a least runtime of 10 s, of the jobs that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_slowdown: Option<f64>,
    /// The mean bounded slowdown in the shadow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow_mean_slowdown: Option<f64>,
    /// The number of jobs that start earlier in the shadow, by a second or more.
    pub earlier: u64,
    /// The number of jobs that start later in the shadow, by a second or more.
    pub later: u64,
    /// The number of further jobs that have started on the machine only.
    pub waits_in_shadow: u64,
    /// The number of further jobs that have started in the shadow only.
    pub waits_on_machine: u64,
    /// The number of further jobs that the policy of the shadow refused.
    pub refused: u64,
}
