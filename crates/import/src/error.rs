//! Errors in an input, with the name of the input, the line and the remedy.

use std::fmt;

use miserly_workload::swf::ReadError;
use miserly_workload::{Trace, TraceError};

use crate::table::{FilesError, MapError};

/// An error that prevents an import.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The input cannot be opened or read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The format of the input is unknown.
    #[error(
        "{name}: not a format of logs that is known: a line is {first:?}; known are the Standard Workload Format, the \
         output of sacct -P and sacct --json, accounting of PBS, LSF and Grid Engine, and Batsim workloads \
         (docs/import.md)"
    )]
    UnknownFormat {
        /// Name of the input.
        name: String,
        /// First line, shortened.
        first: String,
    },
    /// A line is too long for accounting.
    #[error("{name}:{line}: line too long; the input is not accounting")]
    TooLong {
        /// Name of the input.
        name: String,
        /// Line number, from 1.
        line: u64,
    },
    /// The first line has no column names, and its width differs from that of the command.
    #[error(
        "{name}:{line}: no header line with names of columns; without one, {expected} columns with | are expected, as \
         printed by `miserly workload convert slurm --command`, but there are {width}"
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
    /// The columns have a fixed width, so values may be cut.
    #[error(
        "{name}:{line}: columns of fixed width, as sacct prints them without -P, which cuts values; print it with -P"
    )]
    FixedWidth {
        /// Name of the input.
        name: String,
        /// Line number of the header, from 1.
        line: u64,
    },
    /// Required columns are missing.
    #[error(
        "{name}:{line}: missing columns: {missing}; `miserly workload convert slurm --command` prints the command of sacct"
    )]
    NoColumn {
        /// Name of the input.
        name: String,
        /// Line number of the header, from 1.
        line: u64,
        /// Each missing column, with its alternatives.
        missing: String,
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
    /// The text is not the JSON of its format.
    #[error("{name}: {error}; {format}")]
    Json {
        /// Name of the input.
        name: String,
        /// Cause with line and column.
        error: serde_json::Error,
        /// Description of the format.
        format: &'static str,
    },
    /// A job in JSON is invalid.
    #[error("{name}: job {job}: {error}")]
    Job {
        /// Name of the input.
        name: String,
        /// Id of the job.
        job: String,
        /// Cause.
        error: FieldError,
    },
    /// The input is a table, and nothing says what its columns mean.
    #[error(
        "{name}: {what}; say what its columns mean with --preset NAME or --columns FILE.toml; \
         `miserly workload columns {name}` proposes a file, `miserly workload columns --presets` lists the presets{fits}"
    )]
    NoMap {
        /// Name of the input.
        name: String,
        /// What it is.
        what: String,
        /// The preset that has its columns, as an end of the sentence.
        fits: String,
    },
    /// The separator of a table is not one character.
    #[error("{name}: --delimiter of a table is one character")]
    Delimiter {
        /// Name of the input.
        name: String,
    },
    /// A column map is invalid, or does not fit the table.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The files of a table are not there.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// This build does not read Parquet.
    #[error(
        "{name}: Parquet, which this build does not read; build it with `cargo build --release --features parquet`, or \
         convert the file to CSV"
    )]
    NoParquet {
        /// Name of the input.
        name: String,
    },
    /// A table in memory has no cells.
    #[error("{0}")]
    Frame(String),
    /// A Parquet file is damaged, or has what is not supported.
    #[cfg(feature = "parquet")]
    #[error("{name}: {error}")]
    Parquet {
        /// Name of the input.
        name: String,
        /// Cause.
        error: ::parquet::errors::ParquetError,
    },
    /// A row of a table is invalid.
    #[error("{name}, row {row}: {error}; --lenient skips and counts such rows")]
    Row {
        /// Name of the input.
        name: String,
        /// Row number, from 1.
        row: u64,
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

impl ImportError {
    /// Returns the error of JSON that is not of this format, or cannot be read.
    pub(crate) fn of_json(trace: &Trace, error: serde_json::Error, format: &'static str) -> ImportError {
        if error.is_io() {
            let line = error.line() as u64;
            return trace.read_error(ReadError::Io { line, error: error.into() }).into();
        }
        ImportError::Json { name: trace.name().into(), error, format }
    }
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
        field: String,
        /// Value.
        value: String,
        /// Expected kind of value.
        expected: &'static str,
    },
    /// A cell of a table is not as its column map has it.
    Cell(Box<CellError>),
}

/// A cell of a table that is not as its column map has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellError {
    /// Column, or field that is computed from columns.
    pub column: String,
    /// Cell as it is written, or the computed number.
    pub cell: String,
    /// Expected kind of value.
    pub expected: &'static str,
    /// The line or rule of the map that reads it, with its place and with the cells of a computed number.
    pub rule: String,
}

impl FieldError {
    /// Returns the error at a line of an input.
    pub(crate) fn at(self, name: &str, line: u64) -> ImportError {
        ImportError::Line { name: name.to_owned(), line, error: self }
    }

    /// Returns the error at a line or a row.
    pub(crate) fn at_place(self, name: &str, unit: &str, number: u64) -> ImportError {
        match unit {
            "line" => self.at(name, number),
            _ => ImportError::Row { name: name.to_owned(), row: number, error: self },
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldError::Width { found, expected } => {
                write!(
                    f,
                    "{found} columns where {expected} are expected (a separator in a value? JobName need not be there)"
                )
            }
            FieldError::Value { field, value, expected } => {
                write!(f, "{field} is {value:?}; expected: {expected}")
            }
            FieldError::Cell(error) => {
                let CellError { column, cell, expected, rule } = &**error;
                write!(f, "{column} is {cell:?}; expected: {expected} ({rule})")
            }
        }
    }
}

impl std::error::Error for FieldError {}
