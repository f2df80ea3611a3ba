//! Interactive jobs: `run`, `alloc` and `attach` against a daemon.

mod input;

mod terminal;

use std::process::{Command, Output, Stdio};

use miserly_api::model::{Filter, JobView, Phase};

use crate::support::{Daemon, SOON, until};

/// Returns the command of these arguments, in the folder of the daemon.
fn command(daemon: &Daemon, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_miserly"));
    command.args(arguments).env("MISERLY_SOCKET", &daemon.socket).current_dir(daemon.path(""));
    command.stdin(Stdio::null());
    command
}

fn output(daemon: &Daemon, arguments: &[&str]) -> Output {
    command(daemon, arguments).output().expect("a program that starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits for a job that runs, the only one, and returns it.
#[track_caller]
fn running(daemon: &Daemon) -> JobView {
    until("a job runs", SOON, || {
        let jobs = daemon.client().jobs(&Filter::default()).ok()?;
        jobs.into_iter().find(|job| matches!(job.phase, Phase::Running(_)))
    })
}
