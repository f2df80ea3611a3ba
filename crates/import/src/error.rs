//! What is wrong with an input: which one, where, what to do.

use std::fmt;

use miserly_workload::TraceError;

/// Why nothing could be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The input cannot be opened or read on.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Without a line that ends, it is no accounting.
    #[error("{name}:{line}: a line too long to be text; this is no output of sacct")]
    TooLong {
        /// The input.
        name: String,
        /// The line, from 1.
        line: u64,
    },
    /// The first line names no columns, and is not as wide as the command makes it.
    #[error(
        "{name}:{line}: no header line with JobIDRaw; without one, there are the {expected} columns of the command \
         that `miserly workload import slurm --command` prints, but here {width}"
    )]
    NoHeader {
        /// The input.
        name: String,
        /// The line, from 1.
        line: u64,
        /// Its columns.
        width: usize,
        /// The columns of the command.
        expected: usize,
    },
    /// A column is needed and not there.
    #[error(
        "{name}:{line}: no column {column}; `miserly workload import slurm --command` prints what to ask for"
    )]
    NoColumn {
        /// The input.
        name: String,
        /// The header line, from 1.
        line: u64,
        /// The column, or those of which one is needed.
        column: &'static str,
    },
    /// A line that cannot be a job.
    #[error("{name}:{line}: {error}; --lenient skips and counts such lines")]
    Line {
        /// The input.
        name: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        error: FieldError,
    },
    /// The text is no Batsim workload.
    #[error("{name}: {error}; a Batsim workload is one JSON object with nb_res, jobs and profiles")]
    Json {
        /// The input.
        name: String,
        /// What is wrong, and at which line and column.
        error: serde_json::Error,
    },
    /// A job of a Batsim workload that makes no sense.
    #[error("{name}: job {job}: {error}")]
    Job {
        /// The input.
        name: String,
        /// The job's id.
        job: String,
        /// What is wrong with it.
        error: FieldError,
    },
    /// There is no job in it that can be written.
    #[error("{name}: {}", nothing(*read, wanted))]
    Empty {
        /// The input.
        name: String,
        /// How many lines or jobs were read.
        read: u64,
        /// What a job has to be.
        wanted: &'static str,
    },
}

/// Why there is nothing to write.
fn nothing(read: u64, wanted: &str) -> String {
    match read {
        0 => "holds no jobs".to_owned(),
        _ => format!("none of {read} jobs is {wanted}, so there is nothing to write"),
    }
}

/// A value that is not what its field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldError {
    /// The line has another number of columns than the first.
    Width {
        /// The columns of the line.
        found: usize,
        /// The columns of the first line.
        expected: usize,
    },
    /// A value cannot be understood.
    Value {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldError::Width { found, expected } => {
                write!(f, "{found} columns where {expected} are expected (a | inside a value?)")
            }
            FieldError::Value { field, value, expected } => {
                write!(f, "{field} is {value:?}, which is no {expected}")
            }
        }
    }
}

impl std::error::Error for FieldError {}
