//! The prolog, the epilog and the checkpoint command of a queue: programs of the operator around each attempt of a job.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::lossless;

/// The programs around an attempt. Its shim runs each at most once, with the rights of the shim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuePrograms {
    /// The complete environment of all.
    #[serde(with = "lossless")]
    pub env: Vec<(OsString, OsString)>,
    /// Runs before the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prolog: Option<QueueProgram>,
    /// Runs when no process of the job is left, before the end is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epilog: Option<QueueProgram>,
    /// Writes the job out beside its processes, when a daemon asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<QueueProgram>,
}

/// A program of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueProgram {
    /// The file of the program.
    #[serde(with = "lossless")]
    pub path: PathBuf,
    /// The name of the program and its arguments.
    #[serde(with = "lossless")]
    pub argv: Vec<OsString>,
    /// The time after which it is killed. That of a checkpoint command ends with the request, if that is earlier.
    pub limit: Duration,
}

/// The place of a program in an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// Before the command.
    Prolog,
    /// After the last process of the job.
    Epilog,
    /// Beside the processes of the job, which are killed after it.
    Checkpoint,
}

/// The reason why a program of a queue failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ProgramFailure {
    /// It could not be started.
    #[error("cannot be run: {error}")]
    NotRun {
        /// The reason.
        error: String,
    },
    /// It exited with this code.
    #[error("exit {0}")]
    Code(i32),
    /// It was killed by this signal.
    #[error("signal {0}")]
    Signal(i32),
    /// It was killed because its time was over.
    #[error("killed after {} s", limit.as_secs_f64())]
    TimeLimit {
        /// Its time.
        limit: Duration,
    },
    /// The window of the job ended before it.
    #[error("the window of the job ended before it")]
    Window,
    /// It was killed with the process that supervises it.
    #[error("killed from outside")]
    Killed,
}

/// The end of a program of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramReport {
    /// The reason of a failure; `None` after exit code 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ProgramFailure>,
    /// The end of its output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

impl QueuePrograms {
    /// Returns one of the programs, if the queue has it.
    pub fn get(&self, kind: ProgramKind) -> Option<&QueueProgram> {
        match kind {
            ProgramKind::Prolog => self.prolog.as_ref(),
            ProgramKind::Epilog => self.epilog.as_ref(),
            ProgramKind::Checkpoint => self.checkpoint.as_ref(),
        }
    }
}

impl ProgramKind {
    /// All programs.
    pub const ALL: [ProgramKind; 3] = [ProgramKind::Prolog, ProgramKind::Epilog, ProgramKind::Checkpoint];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            ProgramKind::Prolog => "prolog",
            ProgramKind::Epilog => "epilog",
            ProgramKind::Checkpoint => "checkpoint",
        }
    }
}

impl ProgramReport {
    /// Returns the report of a program without output.
    pub fn failed(failure: ProgramFailure) -> ProgramReport {
        ProgramReport { failure: Some(failure), output: String::new() }
    }
}
