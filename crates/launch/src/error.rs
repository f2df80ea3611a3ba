//! What can go wrong between a daemon and its shims.

use std::io;
use std::path::PathBuf;

use crate::folder::RecordError;
use crate::order::OrderError;
use crate::told::Refusal;

/// Why an attempt was not launched. Unless it is [`LaunchError::Unclear`], its command has not run and never will.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The order makes no sense.
    #[error("the order cannot be carried out: {0}")]
    Order(#[from] OrderError),
    /// Its folder cannot be made (it must not exist yet) or written to.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// No shim could be started.
    #[error("cannot start the shim {}: {error}", exe.display())]
    Spawn {
        /// The program.
        exe: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// The shim left again, or was not to be reached.
    #[error("the shim did not begin: {}", quoted(said))]
    Died {
        /// What it wrote to its log, or what kept it from being reached.
        said: String,
    },
    /// The shim did not begin.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The shim may have begun; [`find`](crate::find()) tells.
    #[error("{error}, and whether the shim has begun is not clear: look for it in {}", dir.display())]
    Unclear {
        /// The folder of the attempt.
        dir: PathBuf,
        /// What went wrong.
        error: String,
    },
}

fn quoted(said: &str) -> &str {
    match said.trim() {
        "" => "it said nothing",
        said => said,
    }
}

/// Why it cannot be told what has become of an attempt.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// A file of the folder cannot be read, or does not say what it should.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Somebody holds the lock and is no shim that can be reached.
    #[error("{}: a process holds the lock and is not to be reached; try again when it has gone", dir.display())]
    Locked {
        /// The folder of the attempt.
        dir: PathBuf,
    },
    /// The processes cannot be looked at.
    #[error("{}: cannot look at the processes: {error}", dir.display())]
    Processes {
        /// The folder of the attempt.
        dir: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// The shim is dead, and what is left of the job does not die.
    #[error("{}: the shim is dead, and the processes {pids:?} of the job do not die", dir.display())]
    Survivors {
        /// The folder of the attempt.
        dir: PathBuf,
        /// What is left.
        pids: Vec<u32>,
    },
}

/// Why a shim gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum TellError {
    /// It has gone: [`Shim::end`](crate::Shim::end), or [`find`](crate::find()), tells why.
    #[error("the shim has gone")]
    Gone,
    /// It does not answer in time. It may still do what it was told.
    #[error("the shim does not answer")]
    Silent,
    /// The connection is broken.
    #[error("the connection to the shim is broken: {0}")]
    Broken(io::Error),
}
