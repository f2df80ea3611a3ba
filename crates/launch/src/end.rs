//! How an attempt ended.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::lossless;
use crate::time::BootTime;

/// The end of an attempt. When it is written, no process of the job is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// How the main process ended.
    pub exit: Exit,
    /// Why it was asked to; `None`: it ended of its own accord. What was left of the job then was ended with it.
    pub cause: Option<Cause>,
    /// When nothing of it was left.
    pub at: BootTime,
    /// Processor time of all its processes, in the program.
    pub user: Duration,
    /// Processor time of all its processes, in the kernel.
    pub system: Duration,
    /// The largest resident set of any one of its processes, in bytes. The few megabytes of the shim, from which the main
    /// process is made, are its least value.
    pub max_rss: u64,
    /// How long after the instant of its killing the last process had gone, if it had to be killed.
    pub late: Option<Duration>,
}

/// How a main process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// With an exit code, 0 to 255.
    Code(i32),
    /// By a signal.
    Signal {
        /// Its number.
        signal: i32,
        /// Whether a core was dumped.
        core: bool,
    },
    /// The command could not be started.
    Failed(Failure),
}

/// Why a command could not be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// No such directory any more, or no right to it.
    #[error("cannot change to the directory {}: {error}", path.display())]
    Folder {
        /// The directory.
        #[serde(with = "lossless")]
        path: PathBuf,
        /// What the kernel said.
        error: String,
    },
    /// An output cannot be opened.
    #[error("cannot open {} for output: {error}", path.display())]
    Output {
        /// The file.
        #[serde(with = "lossless")]
        path: PathBuf,
        /// What the kernel said.
        error: String,
    },
    /// No such program, or it is none.
    #[error("cannot run {}: {error}", path.display())]
    Program {
        /// The program, as ordered, or the file of the script.
        #[serde(with = "lossless")]
        path: PathBuf,
        /// What the kernel said.
        error: String,
    },
    /// Processors, class, limits: what a job gets before it begins.
    #[error("cannot set {what}: {error}")]
    Setup {
        /// What could not be set.
        what: String,
        /// What the kernel said.
        error: String,
    },
    /// It was killed before the command was started.
    #[error("it was ended before its command was started")]
    Ended,
}

/// Why a job is ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Its window is over.
    Time,
    /// Its user, or an administrator, wanted it.
    User,
    /// It had more memory than it was promised.
    Memory,
    /// It is to run again, later.
    Requeue,
    /// Processors that it had are gone.
    Capacity,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Time => "time",
            Cause::User => "user",
            Cause::Memory => "memory",
            Cause::Requeue => "requeue",
            Cause::Capacity => "capacity",
        })
    }
}
