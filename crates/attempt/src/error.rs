//! Errors between a daemon and its shims.

use std::io;
use std::path::PathBuf;

use crate::files::RecordError;
use crate::protocol::ShimRefusal;
use crate::spec::SpecError;

/// An error of [`launch`](crate::launch()).
///
/// Except for [`LaunchError::Unclear`], the command has not run and never will.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The specification is invalid.
    #[error("invalid attempt specification: {0}")]
    Spec(#[from] SpecError),
    /// The folder already exists, or cannot be created or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The shim could not be spawned.
    #[error("cannot start the shim {}: {error}", exe.display())]
    Spawn {
        /// Program of the shim.
        exe: PathBuf,
        /// Error of the kernel.
        error: io::Error,
    },
    /// The shim exited or was unreachable.
    #[error("the shim did not begin: {}", log_or_placeholder(reason))]
    Died {
        /// Log of the shim, or the connection error.
        reason: String,
    },
    /// The shim rejected the attempt.
    #[error(transparent)]
    Refused(#[from] ShimRefusal),
    /// The shim may have begun. Call [`find`](crate::find()).
    #[error("{error}; the shim may have begun: check {} before a new launch", dir.display())]
    Unclear {
        /// Folder of the attempt.
        dir: PathBuf,
        /// Underlying error.
        error: String,
    },
}

fn log_or_placeholder(reason: &str) -> &str {
    match reason.trim() {
        "" => "its log is empty",
        reason => reason,
    }
}

/// An error of [`find`](crate::find()).
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// A file of the folder is unreadable or damaged.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A process that is not a reachable shim holds the lock.
    #[error("{}: an unreachable process holds the lock; retry after it has exited", dir.display())]
    Locked {
        /// Folder of the attempt.
        dir: PathBuf,
    },
    /// The processes cannot be inspected.
    #[error("{}: cannot inspect the processes: {error}", dir.display())]
    JobProcesses {
        /// Folder of the attempt.
        dir: PathBuf,
        /// Error of the kernel.
        error: io::Error,
    },
    /// The shim is dead and processes of the job do not die.
    #[error("{}: the shim is dead and the processes {pids:?} of the job do not die; retry later", dir.display())]
    Survivors {
        /// Folder of the attempt.
        dir: PathBuf,
        /// Remaining processes.
        pids: Vec<u32>,
    },
}

/// A reason for which a command has no reply.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The shim has exited. [`find`](crate::find()) returns its end.
    #[error("the shim has exited")]
    Gone,
    /// The shim did not reply in time. It may still carry out the command.
    #[error("the shim did not reply in time")]
    Silent,
    /// The connection failed.
    #[error("the connection to the shim failed: {0}")]
    Broken(io::Error),
}
