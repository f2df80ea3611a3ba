//! Reports of failed commands: a line for users, JSON for programs.

use miserly_api::client::ClientError;
use serde_json::{Value, json};

use super::exit_code;

/// Prints the failure of a command, or of one of its jobs, to standard error.
pub(crate) fn print_failure(json: bool, job: Option<i64>, error: &anyhow::Error) {
    match job {
        _ if json => note!("{}", document(job, error)),
        Some(job) => note!("error: job {job}: {error:#}"),
        None => note!("error: {error:#}"),
    }
}

/// Returns the API's problem. Without a daemon, returns one of the same form.
fn document(job: Option<i64>, error: &anyhow::Error) -> Value {
    let mut problem = if let Some(ClientError::Refused(problem)) = error.downcast_ref() {
        json!(problem)
    } else {
        let code = if exit_code(error).is_some() { "no_answer" } else { "malformed" };
        json!({"code": code, "message": format!("{error:#}")})
    };
    if let Some(job) = job.filter(|_| problem["job"].is_null()) {
        problem["job"] = job.into();
    }
    json!({"error": problem})
}
