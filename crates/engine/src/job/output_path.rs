//! The output files of a job.

use std::path::PathBuf;

use miserly_api::model::OutputNames;

use crate::Record;

/// Returns the file of the standard output.
pub(crate) fn output(record: &Record) -> PathBuf {
    names(record).output(&record.submission)
}

/// Returns the file of the standard error. By default it is that of the output.
pub(crate) fn error(record: &Record) -> PathBuf {
    names(record).error(&record.submission)
}

fn names(record: &Record) -> OutputNames<'_> {
    OutputNames { job: record.number, array: record.array.map(Into::into), name: &record.name }
}
