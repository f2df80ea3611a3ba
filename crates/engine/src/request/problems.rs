//! The problems that several parts of the engine report.

use miserly_api::model::{Problem, ProblemCode};

use crate::JournalError;

/// Returns the problem of a request for a job that does not exist.
pub(crate) fn no_job(job: i64) -> Problem {
    Problem::new(ProblemCode::NotFound, format!("there is no job {job}; `miserly queue --all` lists them"))
}

/// Returns the problem of a journal that cannot be read.
#[allow(clippy::needless_pass_by_value, reason = "the signature that map_err needs")]
pub(crate) fn unreadable(error: JournalError) -> Problem {
    Problem::new(ProblemCode::Storage, error.to_string())
}

/// Returns the problem of a field whose value is valid, but not permitted here.
pub(crate) fn refused_field(field: &str, message: String) -> Problem {
    Problem { code: ProblemCode::Refused, ..Problem::with_field(field, message) }
}
