//! Errors of a measurement.

use std::io;

use miserly_api::client::ClientError;
use miserly_experiments::experiment::ExperimentError;
use miserly_run::SetupError;

/// The reason why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The machine has one processor.
    #[error("miser-1999 needs two processors; this process may use {0}")]
    Processors(usize),
    /// There is no part of that name.
    #[error("no such part; the parts of {} are {}", crate::NAME, crate::PARTS.join(", "))]
    Part,
    /// An operation of the system failed.
    #[error("{what}: {error}")]
    Io {
        /// The operation.
        what: String,
        /// The cause.
        error: io::Error,
    },
    /// The daemon did not start, or ended.
    #[error("the daemon of the experiment does not run; its log ends with: {0}")]
    Daemon(String),
    /// The daemon refused a request or did not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A kernel did not run to its end.
    #[error("{0}")]
    Kernel(String),
    /// The simulation does not run.
    #[error("the simulated day: {0}")]
    Simulation(String),
    /// The results cannot be written.
    #[error(transparent)]
    Results(#[from] ExperimentError),
}

impl MeasureError {
    /// Returns a function that makes an error of a failed operation.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> MeasureError {
        move |error| MeasureError::Io { what: what.into(), error }
    }
}

impl From<SetupError> for MeasureError {
    fn from(error: SetupError) -> MeasureError {
        MeasureError::Simulation(error.to_string())
    }
}
