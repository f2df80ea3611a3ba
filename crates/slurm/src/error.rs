//! Why a cluster cannot be read.

use std::io;
use std::time::Duration;

/// The reason why a cluster cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SlurmError {
    /// A command is not there.
    #[error("{program}: not found; Slurm's client commands have to be installed and in PATH")]
    Missing {
        /// The command.
        program: String,
    },
    /// A command cannot be run.
    #[error("{program}: {error}")]
    Program {
        /// The command.
        program: String,
        /// The error of the system.
        error: io::Error,
    },
    /// A command gave no answer.
    #[error("{program} gave no answer within {} s{}", within.as_secs(), said(message))]
    Late {
        /// The command.
        program: String,
        /// The time that it had.
        within: Duration,
        /// Its standard error.
        message: String,
    },
    /// A command failed.
    #[error("{program} failed{}", said(message))]
    Failed {
        /// The command.
        program: String,
        /// Its standard error.
        message: String,
    },
    /// A line of an answer is not understood.
    #[error("{program}: {problem} in {line:?}; this version of Slurm may be unknown")]
    Unreadable {
        /// The command.
        program: String,
        /// The problem.
        problem: String,
        /// The line.
        line: String,
    },
    /// A partition does not exist.
    #[error("the cluster has no partition {partition}; it has {}", known.join(", "))]
    NoPartition {
        /// The partition.
        partition: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The accounting cannot be converted.
    #[error(transparent)]
    Accounting(#[from] miserly_import::ImportError),
}

fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}
