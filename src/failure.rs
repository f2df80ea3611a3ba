//! Failed commands: a line for users, JSON for programs, and the exit code.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::colour::message_head;

/// The exit code of a command whose arguments or input are wrong.
const BAD_INPUT: u8 = 2;

/// The exit code of a command that the daemon refused or did not answer.
#[cfg(feature = "client")]
const NO_SERVICE: u8 = 1;

/// The exit code of a command that a signal ends.
pub(crate) const INTERRUPTED: i32 = 130;

/// What a daemon, or the connection to it, has to do with a failure.
#[derive(Default)]
struct Refusal {
    /// The request that the daemon would accept instead.
    instead: String,
    /// The API's problem.
    problem: Option<Value>,
    /// The code of a problem without one.
    code: Option<&'static str>,
    /// The exit code.
    exit: Option<u8>,
}

/// Returns the exit code for the failure of a command.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(Refusal::from(error).exit.unwrap_or(BAD_INPUT))
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
pub(crate) fn text(error: &anyhow::Error) -> String {
    causes(error) + &Refusal::from(error).instead
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
    let Refusal { problem, code, .. } = Refusal::from(error);
    let of_form = || json!({"code": code.unwrap_or("malformed"), "message": causes(error)});
    let mut problem = problem.unwrap_or_else(of_form);
    if let Some(job) = job.filter(|_| problem["job"].is_null()) {
        problem["job"] = job.into();
    }
    json!({"error": problem})
}

/// Without a client no failure is that of a daemon.
#[cfg(not(feature = "client"))]
impl From<&anyhow::Error> for Refusal {
    fn from(_: &anyhow::Error) -> Refusal {
        Refusal::default()
    }
}

#[cfg(feature = "client")]
mod of_daemon {
    use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
    use miserly_api::client::{ClientError, NoSocket};
    use miserly_api::model::{Possible, ProblemCode};
    use miserly_core::Span;
    use miserly_units::duration;
    use serde_json::json;

    use super::{BAD_INPUT, NO_SERVICE, Refusal};
    use crate::output::local;

    impl From<&anyhow::Error> for Refusal {
        fn from(error: &anyhow::Error) -> Refusal {
            match error.downcast_ref() {
                Some(ClientError::Refused(problem)) => Refusal {
                    instead: problem.possible.map_or_else(String::new, instead),
                    problem: Some(json!(problem)),
                    code: None,
                    exit: Some(if problem.code == ProblemCode::Malformed { BAD_INPUT } else { NO_SERVICE }),
                },
                is_client => {
                    let is_of_daemon = is_client.is_some() || error.is::<NoSocket>();
                    Refusal {
                        code: is_of_daemon.then_some("no_answer"),
                        exit: is_of_daemon.then_some(NO_SERVICE),
                        ..Refusal::default()
                    }
                }
            }
        }
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
}
