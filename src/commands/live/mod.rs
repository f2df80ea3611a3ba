//! The daemon, and the commands that send requests to it. One file per command, except for those
//! that only pass on a job number.

pub(crate) mod daemon;

pub(crate) mod export;

pub(crate) mod backup;

mod text;

mod submission;

mod places;

mod shell_words;

mod unread;

mod submit;

mod lines;

mod quote;

mod forecast;

mod what_if;

mod shadow;

mod queue;

mod show;

mod logs;

mod output_file;

mod visible;

mod session;

mod job_requests;

mod job_lists;

mod extend;

mod modify;

mod moves;

mod wait;

mod limits;
mod pools;

mod reservation;

mod status;

mod usage;

mod events;

mod hook;

mod metrics;

mod drain;

mod signals;

pub(crate) mod replay;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use miserly_api::client::{Client, DaemonSocket, find, named_socket};
use miserly_live::config::default_state;
use serde::Serialize;

pub(crate) use self::drain::run as drain;
pub(crate) use self::events::run as events;
pub(crate) use self::extend::run as extend;
pub(crate) use self::forecast::run as forecast;
pub(crate) use self::hook::run as hook;
pub(crate) use self::job_requests::{cancel, hold, pause, release, requeue, resize, resume, signal};
pub(crate) use self::limits::run as limits;
pub(crate) use self::logs::run as logs;
pub(crate) use self::metrics::run as metrics;
pub(crate) use self::modify::run as modify;
pub(crate) use self::output_file::{AWAY, is_away};
pub(crate) use self::places::check as check_places;
pub(crate) use self::pools::run as pools;
pub(crate) use self::queue::run as queue;
pub(crate) use self::quote::run as wait_of;
pub(crate) use self::reservation::run as reservation;
pub(crate) use self::session::{
    Messages, alloc, attach, begin_session, block_signals, check_terminal, run, terminal, user_shell,
};
pub(crate) use self::shadow::run as shadow;
#[cfg(feature = "slurm")]
pub(crate) use self::shadow::shown as shadow_text;
pub(crate) use self::show::run as show;
pub(crate) use self::signals::{reload, stop};
pub(crate) use self::status::run as status;
pub(crate) use self::submission::{read_script, submission_of_command, submission_of_script};
pub(crate) use self::submit::run as submit;
pub(crate) use self::text::local;
#[cfg(feature = "slurm")]
pub(crate) use self::text::{counted, matches_pattern, table};
pub(crate) use self::usage::run as usage;
pub(crate) use self::wait::run as wait;
pub(crate) use self::what_if::run as what_if;
use crate::args::{DaemonArgs, DaemonCommand};
use crate::commands::{success_of, talk};
use crate::output::{print, print_json};

/// Runs a command and returns its exit code, unless it fails.
pub(crate) fn run_command(command: &DaemonCommand) -> anyhow::Result<ExitCode> {
    match command {
        DaemonCommand::Daemon(args) => success_of(daemon::run(args)),
        DaemonCommand::Shadow(args) => success_of(shadow(args)),
        DaemonCommand::Replay(args) => replay::run(args),
        DaemonCommand::Submit(args) => submit(args),
        DaemonCommand::Run(args) => run(args),
        DaemonCommand::Alloc(args) => alloc(args),
        DaemonCommand::Attach(args) => attach(args),
        DaemonCommand::Queue(args) => queue(args),
        DaemonCommand::Show(args) => show(args),
        DaemonCommand::Logs(args) => logs(args),
        DaemonCommand::Wait(args) => wait(args),
        DaemonCommand::Cancel(args) => cancel(args),
        DaemonCommand::Hold(args) => hold(args),
        DaemonCommand::Release(args) => release(args),
        DaemonCommand::Requeue(args) => requeue(args),
        DaemonCommand::Extend(args) => extend(args),
        DaemonCommand::Signal(args) => signal(args),
        DaemonCommand::Resize(args) => resize(args),
        DaemonCommand::Pause(args) => pause(args),
        DaemonCommand::Resume(args) => resume(args),
        DaemonCommand::Modify(args) => modify(args),
        DaemonCommand::Reservation(args) => reservation(args),
        DaemonCommand::Limits(args) => limits(args),
        DaemonCommand::Pools(args) => pools(args),
        DaemonCommand::Status(args) => status(args),
        DaemonCommand::Usage(args) => usage(args),
        DaemonCommand::Events(args) => events(args),
        DaemonCommand::Hook(args) => hook(args),
        DaemonCommand::Metrics(args) => metrics(args),
        DaemonCommand::Drain(args) => drain(args),
        DaemonCommand::Stop(args) => stop(args),
        DaemonCommand::Reload(args) => reload(args),
        DaemonCommand::Export(args) => success_of(export::run(args)),
        DaemonCommand::Backup(args) => success_of(backup::run(args)),
        DaemonCommand::SlurmNames(args) => success_of(crate::slurm_names::install(args)),
        DaemonCommand::Shim(args) => Ok(miserly_launch::shim::run(&args.dir)),
    }
}

/// The exit code of a command that could not be carried out. Also that of `wait` if the outcome of
/// a job is unknown.
const UNKNOWN: u8 = 125;

/// Returns a client of the daemon in the arguments.
fn client(args: &DaemonArgs) -> anyhow::Result<Client> {
    talk(find(args.socket.as_deref())?)
}

/// Returns the state folder: the given one, else that of the daemon in `MISERLY_SOCKET`, else that
/// of this user's daemon.
fn state_folder(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let Some(path) = named_socket() else { return Ok(default_state()?) };
    let status = talk(DaemonSocket { path, named: true })?.status();
    let asked = "cannot get the state folder from the daemon of MISERLY_SOCKET; give --state";
    Ok(status.context(asked)?.state.into())
}

/// Prints a reply: the API's document as JSON, or its text for users.
fn print_answer(json: bool, answer: &impl Serialize, shown: impl FnOnce() -> String) -> anyhow::Result<()> {
    if json { print_json(answer) } else { print(&shown()) }
}
