//! The events of jobs, for people.

use miserly_core::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::instant::seconds;

/// An event of a job, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Note {
    /// Its placement was sent to Slurm.
    Placed {
        /// The nodes.
        nodes: Vec<String>,
        /// The reason of the policy.
        reason: String,
    },
    /// A placement on idle nodes, ahead of its start, was sent to Slurm.
    PlacedOpportunistically {
        /// The nodes.
        nodes: Vec<String>,
    },
    /// It runs before its own start.
    StartedOpportunistically {
        /// The start. In JSON it is in seconds since 1970.
        #[serde(with = "seconds")]
        start: Time,
    },
    /// It ran before its own start, and is stopped.
    ///
    /// Its nodes are needed, or a limit of its user is.
    Parked {
        /// The time for which it ran. In JSON it is in seconds.
        #[serde(serialize_with = "seconds::serialize")]
        ran: Span,
    },
    /// It runs for a quantum.
    StartedForQuantum {
        /// The start. In JSON it is in seconds since 1970.
        #[serde(with = "seconds")]
        start: Time,
    },
    /// It has not ended in its quantum, and waits again.
    QuantumOver {
        /// The time for which it ran. In JSON it is in seconds.
        #[serde(serialize_with = "seconds::serialize")]
        ran: Span,
    },
    /// It is suspended for the quantum of another job.
    Suspended,
    /// It runs again.
    Resumed {
        /// The time for which it was suspended. In JSON it is in seconds.
        #[serde(serialize_with = "seconds::serialize")]
        after: Span,
    },
    /// It runs.
    Started {
        /// The start. In JSON it is in seconds since 1970.
        #[serde(with = "seconds")]
        start: Time,
        /// Its last promise, if it had one. In JSON it is in seconds since 1970.
        #[serde(with = "seconds::optional")]
        promised: Option<Time>,
    },
    /// It started without the driver.
    StartedBySlurm,
    /// It is gone from the cluster.
    Gone {
        /// Whether it ran.
        ran: bool,
    },
    /// It waits again.
    Requeued,
    /// It is not planned for now.
    NotPlanned {
        /// The reason.
        why: String,
    },
    /// It has a promise to start at that time or before.
    Promised {
        /// The latest start. In JSON it is in seconds since 1970.
        #[serde(with = "seconds")]
        latest: Time,
    },
    /// Its promise cannot be kept.
    PromiseBroken {
        /// The new latest start; none while it is not known. In JSON it is in seconds since 1970.
        #[serde(with = "seconds::optional")]
        latest: Option<Time>,
        /// The cause.
        why: String,
    },
}

/// The start of a job that had a promise or not, for the audit. Its instants are in seconds since 1970 in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct StartRecord {
    /// The job.
    pub job: String,
    /// The submission.
    #[serde(with = "seconds")]
    pub submitted: Time,
    /// The first promise, if there was one.
    #[serde(with = "seconds::optional")]
    pub first: Option<Time>,
    /// The last promise.
    #[serde(with = "seconds::optional")]
    pub last: Option<Time>,
    /// The start on the cluster.
    #[serde(with = "seconds")]
    pub start: Time,
    /// Why a promise was broken.
    pub broken: Option<String>,
}

impl StartRecord {
    /// Returns whether it started by its first promise.
    pub fn is_kept(&self) -> Option<bool> {
        self.first.map(|first| self.start <= first)
    }
}
