//! Errors in an input, with the name of the input, the line and the remedy.

use std::fmt;

use miserly_workload::TraceError;

/// An error that prevents an import.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The input cannot be opened or read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The form of the input is unknown.
    #[error(
        "{name}: not a form of log that is known: a line is {first:?}; known are the Standard Workload Format, the \
         output of sacct -P, and Batsim workloads (docs/import.md)"
    )]
    UnknownForm {
        /// Name of the input.
        name: String,
        /// First line, shortened.
        first: String,
    },
    /// A line is too long for accounting.
    #[error("{name}:{line}: line too long; the input is not the output of sacct")]
    TooLong {
        /// Name of the input.
        name: String,
        /// Line number, from 1.
        line: u64,
    },
    /// The first line has no column names, and its width differs from that of the command.
    #[error(
        "{name}:{line}: no header line with JobIDRaw; without one, {expected} columns are expected, as printed by \
         `miserly workload import slurm --command`, but there are {width}"
    )]
    NoHeader {
        /// Name of the input.
        name: String,
        /// Line number, from 1.
        line: u64,
        /// Number of columns in the line.
        width: usize,
        /// Number of columns of the command.
        expected: usize,
    },
    /// A required column is missing.
    #[error(
        "{name}:{line}: no column {column}; `miserly workload import slurm --command` prints the required command"
    )]
    NoColumn {
        /// Name of the input.
        name: String,
        /// Line number of the header, from 1.
        line: u64,
        /// Column, or the columns of which one is required.
        column: &'static str,
    },
    /// A line is not a valid job.
    #[error("{name}:{line}: {error}; --lenient skips and counts such lines")]
    Line {
        /// Name of the input.
        name: String,
        /// Line number, from 1.
        line: u64,
        /// Cause.
        error: FieldError,
    },
    /// The last line has no line end.
    #[error(
        "{name}:{line}: the last line has no line end, so the file may be cut in it; write the file again, or add the \
         line end; --lenient skips and counts such a line"
    )]
    Cut {
        /// Name of the input.
        name: String,
        /// Line number, from 1.
        line: u64,
    },
    /// The text is not a Batsim workload.
    #[error("{name}: {error}; a Batsim workload is one JSON object with nb_res, jobs and profiles")]
    Json {
        /// Name of the input.
        name: String,
        /// Cause with line and column.
        error: serde_json::Error,
    },
    /// A job of a Batsim workload is invalid.
    #[error("{name}: job {job}: {error}")]
    Job {
        /// Name of the input.
        name: String,
        /// Id of the job.
        job: String,
        /// Cause.
        error: FieldError,
    },
    /// No job can be written.
    #[error("{name}: {}", nothing(*read, wanted))]
    Empty {
        /// Name of the input.
        name: String,
        /// Number of lines or jobs read.
        read: u64,
        /// Required property of a job.
        wanted: &'static str,
    },
}

/// Returns the reason why no job is written.
fn nothing(read: u64, wanted: &str) -> String {
    match read {
        0 => "holds no jobs".to_owned(),
        _ => format!("none of {read} jobs is {wanted}, so there is nothing to write"),
    }
}

/// An invalid value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldError {
    /// The number of columns differs from the first line.
    Width {
        /// Columns of the line.
        found: usize,
        /// Columns of the first line.
        expected: usize,
    },
    /// A value is invalid.
    Value {
        /// Field.
        field: &'static str,
        /// Value.
        value: String,
        /// Expected kind of value.
        expected: &'static str,
    },
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldError::Width { found, expected } => {
                write!(
                    f,
                    "{found} columns where {expected} are expected (a | in a value? sacct need not print JobName)"
                )
            }
            FieldError::Value { field, value, expected } => {
                write!(f, "{field} is {value:?}; expected: {expected}")
            }
        }
    }
}

impl std::error::Error for FieldError {}
