//! Failed commands: a line for users, JSON for programs, and the exit code.

use std::process::ExitCode;

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use miserly_api::client::{ClientError, NoSocket};
use miserly_api::model::{Possible, ProblemCode};
use miserly_core::Span;
use miserly_units::duration;
use serde_json::{Value, json};

use crate::colour::message_head;
use crate::commands::live::local;

/// The exit code of a command whose arguments or input are wrong.
const BAD_INPUT: u8 = 2;

/// The exit code of a command that the daemon refused or did not answer.
const NO_SERVICE: u8 = 1;

/// The exit code of a command that a signal ends.
pub(crate) const INTERRUPTED: i32 = 130;

/// Returns the exit code for the failure of a command.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(match error.downcast_ref() {
        Some(ClientError::Refused(problem)) if problem.code == ProblemCode::Malformed => BAD_INPUT,
        _ if is_of_daemon(error) => NO_SERVICE,
        _ => BAD_INPUT,
    })
}

/// Returns whether the failure is that of the daemon or of the connection to it.
fn is_of_daemon(error: &anyhow::Error) -> bool {
    error.is::<ClientError>() || error.is::<NoSocket>()
}

/// Prints the failure of a command, or of one of its jobs, to standard error.
pub(crate) fn print_failure(json: bool, job: Option<i64>, error: &anyhow::Error) {
    match job {
        _ if json => note!("{}", document(job, error)),
        // Many messages name the job themselves.
        Some(job) if !format!("{error:#}").starts_with(&format!("job {job} ")) => {
            note!("{} job {job}: {}", message_head("error"), text(error));
        }
        _ => note!("{} {}", message_head("error"), text(error)),
    }
}

/// Returns an error with its causes, and with the request that the daemon would accept instead.
fn text(error: &anyhow::Error) -> String {
    let possible = match error.downcast_ref() {
        Some(ClientError::Refused(problem)) => problem.possible.map_or_else(String::new, instead),
        _ => String::new(),
    };
    causes(error) + &possible
}

fn instead(possible: Possible) -> String {
    match possible {
        Possible::Window(window) => {
            format!("; the earliest end that can be promised is {}", local(up(window.end)))
        }
        Possible::Reservation(window) => {
            format!("; it is possible from {} to {}", local(up(window.start)), local(up(window.end)))
        }
        Possible::Extension(0) => "; no shorter extension is possible".to_owned(),
        Possible::Extension(secs) => {
            let span = i64::try_from(secs).ok().and_then(Span::from_secs).unwrap_or(Span::MAX);
            format!("; an extension by {} is possible", duration(span))
        }
    }
}

/// Returns the next whole second, so that it can be given in another request.
fn up(at: Timestamp) -> Timestamp {
    let second = TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Ceil);
    at.round(second).unwrap_or(at)
}

/// Returns an error with its causes. A cause that the error ends with is not repeated.
fn causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Returns the API's problem. Without a daemon, returns one of the same form.
fn document(job: Option<i64>, error: &anyhow::Error) -> Value {
    let mut problem = if let Some(ClientError::Refused(problem)) = error.downcast_ref() {
        json!(problem)
    } else {
        let code = if is_of_daemon(error) { "no_answer" } else { "malformed" };
        json!({"code": code, "message": causes(error)})
    };
    if let Some(job) = job.filter(|_| problem["job"].is_null()) {
        problem["job"] = job.into();
    }
    json!({"error": problem})
}
