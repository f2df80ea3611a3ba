//! The errors of an experiment.

use std::io;
use std::path::PathBuf;

use miserly_run::SetupError;

/// The reason for which an experiment cannot be run or shown.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The file is no TOML, or has a field that an experiment does not have.
    #[error("{file}: {problem}")]
    Toml {
        /// The experiment file.
        file: String,
        /// The message of the parser, with the place.
        problem: String,
    },
    /// The file has a mistake.
    #[error("{file}:{line}: {problem}")]
    File {
        /// The experiment file.
        file: String,
        /// The line.
        line: usize,
        /// The mistake, and its remedy.
        problem: String,
    },
    /// A log is not there.
    #[error("{file}: the log of trace {name:?} is missing: {problem}")]
    MissingLog {
        /// The experiment file.
        file: String,
        /// The log's name in the experiment.
        name: String,
        /// Where it was looked for.
        problem: String,
    },
    /// A log cannot be read, or a run stopped.
    #[error("{run}: {error}")]
    Run {
        /// Which one.
        run: String,
        /// Why.
        error: Box<SetupError>,
    },
    /// A file of the results cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The experiment file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file of the results is damaged.
    #[error("{}: {problem}; remove it, and run the experiment again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        problem: String,
    },
}

impl ExperimentError {
    /// An error of a file of the results.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> ExperimentError {
        let path = path.into();
        move |error| ExperimentError::Io { path, error }
    }
}
