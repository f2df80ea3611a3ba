//! The arguments of the commands that talk to the daemon.

mod hook;

mod modify;

mod queue;

mod reservation;

mod session;

mod submit;

mod usage;

use std::path::PathBuf;

use clap::{Args, value_parser};
use miserly_api::model::{JobRef, JobSignal, job_refs};
use miserly_api::submit::{job_signal, length_of_time};

pub(crate) use self::hook::{HookArgs, HookEvent};
pub(crate) use self::modify::ModifyArgs;
pub(crate) use self::queue::{Column, QueueArgs, SortKey, StateFilter};
pub(crate) use self::reservation::{AddArgs, RemoveArgs, ReservationArgs, ReservationCommand};
pub(crate) use self::session::{AllocArgs, AttachArgs, RunJobArgs};
pub(crate) use self::submit::{SubmitArgs, when};
pub(crate) use self::usage::{UsageArgs, UsageBy};
use super::{Command, SourceArgs};

/// The daemon of a command.
#[derive(Clone, Debug, Args)]
pub(crate) struct DaemonArgs {
    /// The socket of the daemon [default: MISERLY_SOCKET, else $XDG_RUNTIME_DIR/miserly/socket, else /run/miserly/socket]
    #[arg(long, value_name = "SOCKET")]
    pub(crate) socket: Option<PathBuf>,
}

/// Jobs in one argument, with commas between them.
#[derive(Clone, Debug)]
pub(crate) struct JobList(Vec<JobRef>);

impl JobList {
    /// Returns the jobs of several arguments.
    pub(crate) fn all(lists: &[JobList]) -> Vec<JobRef> {
        lists.iter().flat_map(|JobList(ranges)| ranges).cloned().collect()
    }
}

fn job_list(text: &str) -> Result<JobList, String> {
    job_refs(text).map(JobList)
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,

    /// Prints everything: all promises, attempts and what is not enforced, with dates and seconds
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) long: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JobsArgs {
    /// The jobs: numbers, ranges such as 10-20, indexes of an array such as 1_60 or 1[3-8]; a range skips numbers without a job
    #[arg(value_name = "JOB", required = true, value_parser = job_list)]
    pub(crate) jobs: Vec<JobList>,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SignalArgs {
    /// The signal: HUP, INT, QUIT, USR1, USR2, ALRM, TERM, WINCH, or its number
    #[arg(value_name = "SIGNAL", value_parser = job_signal)]
    pub(crate) signal: JobSignal,

    #[command(flatten)]
    pub(crate) jobs: JobsArgs,

    /// Sends it only to the main process: the program, or the shell of the script
    #[arg(long)]
    pub(crate) main: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TakeBackArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,

    /// Breaks the promises to jobs that wait for these; without it the request is refused
    #[arg(long)]
    pub(crate) move_promises: bool,

    /// Prints the promises that would move, and changes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,

    /// Prints the promises that the jobs would get, each on its own, and changes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("filter").multiple(true))]
pub(crate) struct CancelArgs {
    /// The jobs: numbers, ranges such as 10-20, indexes of an array such as 1_60 or 1[3-8]; a range skips jobs that have ended
    #[arg(value_name = "JOB", required_unless_present = "filter", conflicts_with = "filter", value_parser = job_list)]
    pub(crate) jobs: Vec<JobList>,

    /// Takes the numbers as arrays and cancels all their jobs
    #[arg(long, conflicts_with = "filter")]
    pub(crate) array: bool,

    /// Cancels all your unfinished jobs, or those of them that the other filters admit
    #[arg(long, visible_alias = "me", group = "filter", help_heading = "Filters")]
    pub(crate) mine: bool,

    /// Cancels the unfinished jobs of a user, by name or number; for operators, if it is another user
    #[arg(
        long,
        short,
        value_name = "USER",
        conflicts_with = "mine",
        group = "filter",
        help_heading = "Filters"
    )]
    pub(crate) user: Option<String>,

    /// Limits the jobs to a queue; yours, without --user
    #[arg(
        long,
        visible_short_alias = 'p',
        visible_alias = "partition",
        value_name = "QUEUE",
        group = "filter",
        help_heading = "Filters"
    )]
    pub(crate) queue: Option<String>,

    /// Limits the jobs to these states, separated by commas; yours, without --user
    #[arg(
        long,
        visible_short_alias = 't',
        value_name = "STATE",
        value_enum,
        ignore_case = true,
        value_delimiter = ',',
        group = "filter",
        help_heading = "Filters"
    )]
    pub(crate) state: Vec<StateFilter>,

    /// Limits the jobs to this name, in which * is any text and ? any character; yours, without --user
    #[arg(long, short, value_name = "NAME", group = "filter", help_heading = "Filters")]
    pub(crate) name: Option<String>,

    /// Prints the promises that would move, each job on its own, and changes nothing
    #[arg(long, conflicts_with = "array")]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) ask: AskArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExtendArgs {
    /// The jobs: numbers, ranges such as 10-20, indexes of an array such as 1_60 or 1[3-8]; a range skips jobs that have ended
    #[arg(value_name = "JOB", required = true, num_args = 1.., value_parser = job_list)]
    pub(crate) jobs: Vec<JobList>,

    /// The added time: seconds, or 90min, 12h, 7d
    #[arg(value_name = "TIME", value_parser = length_of_time)]
    pub(crate) by: u64,

    /// Prints the promises that would move, and changes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The jobs: numbers, ranges such as 10-20, indexes of an array such as 1_60 or 1[3-8]; a range skips numbers without a job
    #[arg(value_name = "JOB", required = true, value_parser = job_list)]
    pub(crate) jobs: Vec<JobList>,

    /// Continues until the job has ended; with one job only
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// Prints the error output instead of the output
    #[arg(long, short)]
    pub(crate) error: bool,

    /// Prints control characters as they are; a terminal gets them in a visible form such as ^[ otherwise
    #[arg(long)]
    pub(crate) raw: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

/// The options of a request about the daemon itself.
#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// The number of the last known event (its journal): prints the changes after it, without a snapshot if the daemon remembers them
    #[arg(long, value_name = "N", value_parser = value_parser!(i64).range(0..))]
    pub(crate) after: Option<i64>,

    #[command(flatten)]
    pub(crate) ask: AskArgs,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Each is a flag of its own.
pub(crate) struct TopArgs {
    /// Prints one frame as text and ends, as it does where the output is no terminal
    #[arg(long)]
    pub(crate) once: bool,

    /// Draws with ASCII characters, as it does in a locale without UTF-8
    #[arg(long)]
    pub(crate) ascii: bool,

    /// Prints the state as JSON and ends
    #[arg(long, conflicts_with_all = ["once", "ascii", "processors"])]
    pub(crate) json: bool,

    /// Begins with the map of processors, hosts and memory, which the key p shows
    #[arg(long)]
    pub(crate) processors: bool,

    /// Begins at an earlier instant, such as 2026-03-01T08:00; of a log without a date, "day 3 08:00"
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    pub(crate) at: Option<String>,

    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DrainArgs {
    /// Accepts jobs again
    #[arg(long)]
    pub(crate) undo: bool,

    #[command(flatten)]
    pub(crate) ask: AskArgs,
}

impl Command {
    /// Returns whether it is a request to the daemon with JSON output.
    pub(crate) fn asks_daemon_for_json(&self) -> bool {
        match self {
            Command::Submit(args) => args.json,
            Command::WaitOf(args) => args.json && args.daemon.is_some(),
            Command::Queue(args) => args.json,
            Command::Usage(args) => args.json,
            Command::Show(ShowArgs { jobs, .. }) => jobs.json,
            Command::Extend(args) => args.json,
            Command::Modify(args) => args.jobs.json,
            Command::Wait(args) | Command::Pause(args) | Command::Resume(args) => args.json,
            Command::Signal(args) => args.jobs.json,
            Command::Release(args) => args.jobs.json,
            Command::Hold(args) | Command::Requeue(args) => args.jobs.json,
            Command::Cancel(args) => args.ask.json,
            Command::Pools(args) | Command::Limits(args) | Command::Status(args) => args.json,
            Command::Top(args) => args.json,
            Command::Drain(args) => args.ask.json,
            Command::Reservation(args) => match &args.command {
                ReservationCommand::Add(args) => args.ask.json,
                ReservationCommand::List(args) => args.json,
                ReservationCommand::Remove(args) => args.ask.json,
            },
            Command::Events(args) => args.ask.json,
            _ => false,
        }
    }
}

/// Returns the parser of a job number.
fn job() -> clap::builder::RangedI64ValueParser<i64> {
    value_parser!(i64).range(1..)
}

/// Parses one job: its number, or the number of its array with its index.
fn one_job(text: &str) -> Result<JobRef, String> {
    let job: JobRef = text.parse()?;
    if job.is_single() { Ok(job) } else { Err("name one job, such as 12 or 1_60".to_owned()) }
}
