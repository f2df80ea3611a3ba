//! What-if questions to the daemon.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Quote, Submission};

/// A question: how would starts change with one change of a queue? It changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WhatIf {
    /// The queue; the one of a submission without a queue, if absent. A job names its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// A further job. Exactly one of `job`, `policy`, `cpus` and `without_uid` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Submission>,
    /// Another policy of the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Another number of processors of the queue. Where the number changes by the week, this is the largest one, and the
    /// others change by the same number; none stay none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u64>,
    /// A user, by number, whose jobs are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_uid: Option<u32>,
}

/// The answer to a what-if question: the starts in the same simulated futures without and with the change.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct WhatIfAnswer {
    /// The queue.
    pub queue: String,
    /// The number of futures.
    pub futures: u64,
    /// The promise and the forecast of the further job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<Quote>,
    /// The waiting jobs that started in all futures, by number.
    pub jobs: Vec<WhatIfJob>,
    /// The number of waiting jobs that are not compared: they are in one state only, or far behind in the queue.
    pub not_compared: u64,
    /// The difference of the mean start of these jobs; absent without jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<WhatIfDifference>,
}

/// The starts of a waiting job.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct WhatIfJob {
    /// The job.
    pub number: i64,
    /// The median start without the change.
    pub before: Timestamp,
    /// The median start with the change.
    pub after: Timestamp,
    /// The difference.
    pub difference: WhatIfDifference,
}

/// By how many seconds starts are later with a change. It is negative if they are earlier.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct WhatIfDifference {
    /// The median over the futures.
    pub median: f64,
    /// The least difference of the middle 90 % of the futures.
    pub least: f64,
    /// The largest difference of the middle 90 % of the futures.
    pub largest: f64,
}
