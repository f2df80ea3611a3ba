//! Failures of launches and of looks at attempts, as far as the daemon distinguishes them.

use miserly_launch::{FindError, LaunchError, RecordError, ShimRefusal};
use serde::{Deserialize, Serialize};

/// The failure of a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct LaunchFailure {
    /// The kind.
    pub kind: LaunchFailureKind,
    /// A sentence for users.
    pub message: String,
}

/// The kind of a failure of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LaunchFailureKind {
    /// The machine lacks disk space, memory, files or processes, which may be available later.
    Temporary,
    /// The shim was killed before it began.
    Died,
    /// A repetition would fail, too.
    Final,
}

impl LaunchFailure {
    pub(crate) fn new(kind: LaunchFailureKind, error: &dyn ToString) -> LaunchFailure {
        LaunchFailure { kind, message: error.to_string() }
    }
}

impl From<LaunchError> for LaunchFailure {
    fn from(error: LaunchError) -> LaunchFailure {
        let kind = match &error {
            LaunchError::Record(_) | LaunchError::Spawn { .. } | LaunchError::Unclear { .. } => {
                LaunchFailureKind::Temporary
            }
            LaunchError::Refused(ShimRefusal::Begin { .. }) => LaunchFailureKind::Temporary,
            LaunchError::Died { .. } => LaunchFailureKind::Died,
            LaunchError::Refused(_) | LaunchError::Spec(_) => LaunchFailureKind::Final,
        };
        LaunchFailure::new(kind, &error)
    }
}

/// The reason why a submission was not sealed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The user cannot submit jobs.
    #[error("{0}")]
    Refused(String),
    /// It may be possible later.
    #[error("{0}")]
    Unavailable(String),
}

/// The failure to find out the state of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum FindFailure {
    /// It can never be found out.
    #[error("{0}")]
    Final(String),
    /// The shim is dead, and these processes of the job do not die.
    #[error("the shim is dead and the processes {0:?} of the job do not die; retry later")]
    Survivors(Vec<u32>),
    /// It may be found out later.
    #[error("{0}")]
    Temporary(String),
}

impl From<FindError> for FindFailure {
    fn from(error: FindError) -> FindFailure {
        match error {
            FindError::Record(RecordError::Damaged { .. }) => FindFailure::Final(error.to_string()),
            FindError::Survivors { pids, .. } => FindFailure::Survivors(pids),
            FindError::Record(_) | FindError::Locked { .. } | FindError::JobProcesses { .. } => {
                FindFailure::Temporary(error.to_string())
            }
        }
    }
}
