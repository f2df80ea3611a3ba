//! The events of jobs, for people.

use serde::{Deserialize, Serialize};

/// An event of a job, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Note {
    /// Slurm was asked to start it.
    Placed {
        /// The nodes.
        nodes: Vec<String>,
        /// The reason of the policy.
        reason: String,
    },
    /// Slurm was asked to start it before its own start, on idle nodes.
    PlacedOpportunistically {
        /// The nodes.
        nodes: Vec<String>,
    },
    /// It runs before its own start.
    StartedOpportunistically {
        /// The start, seconds since 1970.
        start: i64,
    },
    /// It ran before its own start, and is stopped.
    ///
    /// Its nodes are needed, or a limit of its user is.
    Parked {
        /// The seconds for which it ran.
        ran: i64,
    },
    /// It runs for a quantum.
    StartedForQuantum {
        /// The start, seconds since 1970.
        start: i64,
    },
    /// It has not ended in its quantum, and waits again.
    QuantumOver {
        /// The seconds for which it ran.
        ran: i64,
    },
    /// It is suspended for the quantum of another job.
    Suspended,
    /// It runs again.
    Resumed {
        /// The seconds for which it was suspended.
        after: i64,
    },
    /// It runs.
    Started {
        /// The start, seconds since 1970.
        start: i64,
        /// Its last promise, seconds since 1970, if it had one.
        promised: Option<i64>,
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
    SetAside {
        /// The reason.
        why: String,
    },
    /// It has a promise to start at that time or before, seconds since 1970.
    Promised {
        /// The latest start.
        latest: i64,
    },
    /// Its promise cannot be kept.
    PromiseBroken {
        /// The new latest start, seconds since 1970; none while it is not known.
        latest: Option<i64>,
        /// The cause.
        why: String,
    },
}

/// The start of a job that had a promise or not, for the audit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct StartRecord {
    /// The job.
    pub job: String,
    /// The submission, seconds since 1970.
    pub submitted: i64,
    /// The first promise, seconds since 1970, if there was one.
    pub first: Option<i64>,
    /// The last promise.
    pub last: Option<i64>,
    /// The start on the cluster.
    pub start: i64,
    /// Why a promise was broken.
    pub broken: Option<String>,
}

impl StartRecord {
    /// Returns whether it started by its first promise.
    pub fn is_kept(&self) -> Option<bool> {
        self.first.map(|first| self.start <= first)
    }
}
