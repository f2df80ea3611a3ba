//! The reasons for which a log cannot be run.

use std::io;

use miserly_machine_file::MachineError;
use miserly_policies::PolicyError;
use miserly_sim::RunError;
use miserly_workload::{FilterError, NoFeedback, TraceError};

/// The reason for which a log cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// An empty slice.
    #[error("no job is submitted from {from} s to {to} s; --to must be above --from")]
    EmptySlice {
        /// The slice's begin, seconds.
        from: i64,
        /// Its end, seconds.
        to: i64,
    },
    /// A user or a queue that the header does not name.
    #[error("{log}: no {kind} {wanted:?}; {has}")]
    NoName {
        /// The log.
        log: String,
        /// What is selected: user or queue.
        kind: &'static str,
        /// The requested name.
        wanted: String,
        /// What the log has.
        has: String,
    },
    /// A filter on a field that the log has not.
    #[error("{log}: {error}")]
    Filter {
        /// The log.
        log: String,
        /// The error.
        error: FilterError,
    },
    /// There is no such machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The log cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Jobs do not span hosts with typed GPUs.
    #[error("machine {0}: its GPUs have types, so each job runs on one host; leave out --span any")]
    SpanOfGpus(String),
    /// An option that needs pools, on a machine without.
    #[error(
        "{0} needs a machine with pools; give --machine a file with [pool] or [[queue]] (docs/machines.md)"
    )]
    NoPools(&'static str),
    /// The jobs of the log do not depend on each other.
    #[error("{log}: {why}")]
    NoFeedback {
        /// The log.
        log: String,
        /// What it lacks.
        why: NoFeedback,
    },
    /// A run that ended before its batches were full.
    #[error(
        "{ended} jobs ended, but the batches need {wanted}; give fewer or shorter batches, or a longer log"
    )]
    TooShort {
        /// How many ended.
        ended: u64,
        /// How many the batches need.
        wanted: u64,
    },
    /// The policy does not run on the machine.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The run stopped.
    #[error(transparent)]
    Run(#[from] RunError<TraceError>),
    /// The file of the jobs cannot be written.
    #[error("cannot write the jobs: {0}")]
    Write(#[from] io::Error),
}
