//! `miserly run`, `miserly alloc` and `miserly attach`: jobs with a client at their input or their terminal.

mod escape;

mod followers;

mod interact;

mod link;

mod messages;

mod raw_mode;

mod reminder;

mod session_job;

mod signals;

mod start;

use std::ffi::OsString;
use std::io::{IsTerminal, stdin, stdout};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use miserly_api::client::Client;
use miserly_api::model::{Accepted, Interaction, Submission};
use rustix::termios::tcgetwinsize;

pub(crate) use self::messages::Messages;
use self::session_job::SessionJob;
use self::signals::Signals;
use super::submission::{Program, submission_of};
use super::submit::warn_of_mail;
use super::{client, job_lists, places};
use crate::args::{AllocArgs, AttachArgs, DaemonArgs, RunJobArgs};

/// The shell of an account without one.
const SHELL: &str = "/bin/sh";

/// Runs a job with this command's input, or with its terminal, and exits as the job does.
pub(crate) fn run(args: &RunJobArgs) -> anyhow::Result<ExitCode> {
    if args.pty {
        check_terminal("--pty")?;
    }
    let signals = block_signals()?;
    let interaction = if args.pty { terminal() } else { Interaction::Stdin };
    let submission = submission_of(Program::Command(&args.command), args.options.clone(), true)?;
    let submission = Submission { interaction: Some(interaction), ..submission };
    begin(&args.daemon, &submission, own_messages(args.quiet), &signals)
}

/// Runs the user's shell in a window, with this command's terminal.
pub(crate) fn alloc(args: &AllocArgs) -> anyhow::Result<ExitCode> {
    check_terminal("alloc")?;
    let signals = block_signals()?;
    let command = [user_shell()];
    let mut options = args.options.clone();
    // The shell is for the user's window, not for idle resources before it.
    options.submission.no_opportunistic = true;
    options.submission.name.get_or_insert_with(|| "alloc".to_owned());
    let submission = submission_of(Program::Command(&command), options, true)?;
    let submission = Submission { interaction: Some(terminal()), ..submission };
    begin(&args.daemon, &submission, own_messages(args.quiet), &signals)
}

/// Returns the shell of the user.
pub(crate) fn user_shell() -> OsString {
    std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| SHELL.into())
}

/// Attaches to a job that runs, or that will.
pub(crate) fn attach(args: &AttachArgs) -> anyhow::Result<ExitCode> {
    let signals = block_signals()?;
    let client = client(&args.daemon)?;
    let job = job_lists::number(&client, &args.job)?;
    SessionJob::new(client, &args.daemon, job, &signals, Messages::Own).attached()
}

fn begin(
    daemon: &DaemonArgs,
    submission: &Submission,
    messages: Messages,
    signals: &Signals,
) -> anyhow::Result<ExitCode> {
    places::check(submission)?;
    begin_with(client(daemon)?, daemon, submission, messages, signals).map(|end| end.code)
}

/// Submits a job of the daemon that is found without an option, and serves it.
///
/// # Errors
/// As Slurm's commands, if the job had not started within its longest wait.
pub(crate) fn begin_session(
    client: Client,
    submission: &Submission,
    messages: Messages,
    signals: &Signals,
) -> anyhow::Result<ExitCode> {
    places::check(submission)?;
    let end = begin_with(client, &DaemonArgs { socket: None }, submission, messages, signals)?;
    anyhow::ensure!(!end.is_given_up, "Unable to allocate resources: Requested resources are busy");
    Ok(end.code)
}

/// The end of a session whose job this command has submitted.
struct SessionEnd {
    code: ExitCode,
    /// Whether the job had not started by its latest start.
    is_given_up: bool,
}

fn begin_with(
    client: Client,
    daemon: &DaemonArgs,
    submission: &Submission,
    messages: Messages,
    signals: &Signals,
) -> anyhow::Result<SessionEnd> {
    let submitted = client.submit(submission)?;
    warn_of_mail(&client, submission);
    let [job @ Accepted { number, .. }] = &submitted.jobs[..] else {
        anyhow::bail!("the daemon accepted {} jobs and not one", submitted.jobs.len())
    };
    messages.accepted(job);
    let mut session = SessionJob::new(client, daemon, *number, signals, messages);
    let code = session.run(!job.started)?;
    Ok(SessionEnd { code, is_given_up: session.is_given_up() })
}

fn own_messages(quiet: bool) -> Messages {
    if quiet { Messages::Quiet } else { Messages::Own }
}

/// Reads signals in place of being ended by them.
pub(crate) fn block_signals() -> anyhow::Result<Signals> {
    Signals::block().context("cannot read signals")
}

pub(crate) fn check_terminal(what: &str) -> anyhow::Result<()> {
    let has_terminal = stdin().is_terminal() && stdout().is_terminal();
    ensure!(has_terminal, "{what}: standard input and output are no terminal; use `run`, or `submit`");
    Ok(())
}

/// Returns a terminal of the size of this one.
pub(crate) fn terminal() -> Interaction {
    let size = tcgetwinsize(stdin()).ok();
    let (rows, columns) = size.map_or((0, 0), |size| (size.ws_row, size.ws_col));
    Interaction::Terminal { rows, columns }
}
