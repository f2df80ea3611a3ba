//! `miserly wait`: waits for the end of jobs, and exits as they did.

use std::process::ExitCode;

use miserly_api::client::Client;
use miserly_api::model::{Exit, Failure, JobView, KilledBy, Phase};

use super::job_lists::{self, Scope};
use super::show::ended_text;
use super::text::Instants;
use super::{UNKNOWN, client, print_answer};
use crate::args::{JobList, JobsArgs};
use crate::failure::print_failure;

/// The exit code of a job that reached its time limit, as that of timeout(1).
const OVERRUN: u8 = 124;

/// The exit code of a job that had not started by its latest start.
const NOT_IN_TIME: u8 = 123;

pub(crate) fn run(args: &JobsArgs) -> anyhow::Result<ExitCode> {
    let client = client(&args.daemon)?;
    let numbers = job_lists::numbers(&client, &JobList::all(&args.jobs), Scope::All, args.json)?;
    Ok(await_all(&client, &numbers, args.json, |job| {
        print_answer(args.json, job, || {
            format!("job {}: {}\n", job.number, ended_text(&job.phase, Instants::exact()))
        })
    }))
}

/// Waits for the jobs in order. Returns the first exit code that is not 0. A failure of the waiting
/// itself is 125, since a job may use any lower code.
pub(super) fn await_all(
    client: &Client,
    jobs: &[i64],
    json: bool,
    on_end: impl Fn(&JobView) -> anyhow::Result<()>,
) -> ExitCode {
    let mut code = 0;
    for &job in jobs {
        let this = match await_one(client, job, &on_end) {
            Ok(this) => this,
            Err(error) => {
                print_failure(json, Some(job), &error);
                UNKNOWN
            }
        };
        code = if code == 0 { this } else { code };
    }
    ExitCode::from(code)
}

fn await_one(
    client: &Client,
    job: i64,
    on_end: impl Fn(&JobView) -> anyhow::Result<()>,
) -> anyhow::Result<u8> {
    let job = client.wait(job)?;
    on_end(&job)?;
    Ok(code(&job.phase))
}

/// Returns the exit code for the end of a job, as a shell has it.
pub(super) fn code(phase: &Phase) -> u8 {
    match phase {
        Phase::Killed { by: KilledBy::Time, .. } => OVERRUN,
        Phase::Done { exit, .. } | Phase::Killed { exit: Some(exit @ Exit::Signal(_)), .. } => of_exit(*exit),
        // As if SIGTERM had ended it: it never ran, or it exited by itself when it was stopped.
        Phase::Killed { by: KilledBy::User | KilledBy::Shutdown | KilledBy::Idle, .. } => {
            of_exit(Exit::Signal(15))
        }
        Phase::Killed { by: KilledBy::Memory, .. } => of_exit(Exit::Signal(9)),
        Phase::Failed { why: Failure::Program, .. } => 127,
        Phase::Failed { why: Failure::NotInTime, .. } => NOT_IN_TIME,
        Phase::Failed { .. } => 126,
        _ => UNKNOWN,
    }
}

fn of_exit(exit: Exit) -> u8 {
    let code = match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => signal.saturating_add(128),
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use miserly_api::model::LostBy;

    use super::*;

    #[track_caller]
    fn check(phase: &Phase, expect: u8) {
        assert_eq!(code(phase), expect, "{phase:?}");
    }

    #[test]
    fn codes() {
        let at = Timestamp::UNIX_EPOCH;
        let done = |exit| Phase::Done { start: at, end: at, exit, cpu_ranges: vec![] };
        let killed = |by, exit| Phase::Killed { start: None, end: at, by, exit, cpu_ranges: vec![] };
        let failed = |why| Phase::Failed { at, why, message: String::new() };
        check(&done(Exit::Code(0)), 0);
        check(&done(Exit::Code(3)), 3);
        check(&done(Exit::Signal(11)), 139);
        check(&killed(KilledBy::Time, Some(Exit::Signal(15))), 124);
        check(&killed(KilledBy::User, None), 143);
        check(&killed(KilledBy::User, Some(Exit::Signal(9))), 137);
        check(&killed(KilledBy::Shutdown, Some(Exit::Code(0))), 143);
        check(&killed(KilledBy::Memory, Some(Exit::Signal(9))), 137);
        check(&killed(KilledBy::Memory, Some(Exit::Code(1))), 137);
        check(&failed(Failure::Program), 127);
        check(&failed(Failure::Output), 126);
        check(&failed(Failure::Dependency), 126);
        check(&failed(Failure::NotInTime), 123);
        check(&killed(KilledBy::Idle, Some(Exit::Code(0))), 143);
        check(&Phase::Lost { at, why: LostBy::Shim }, 125);
    }
}
