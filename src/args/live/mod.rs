//! The arguments of the commands that talk to the daemon.

mod submit;

use std::path::PathBuf;

use clap::{Args, value_parser};
use miserly_api::submit::length_of_time;

pub(crate) use self::submit::SubmitArgs;
use super::Command;

/// The daemon of a command.
#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    /// The daemon's socket, in place of MISERLY_SOCKET, $XDG_RUNTIME_DIR/miserly/socket and /run/miserly/socket
    #[arg(long, value_name = "SOCKET")]
    pub(crate) socket: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    /// Those that have ended, too
    #[arg(long, short)]
    pub(crate) all: bool,

    /// Only your own
    #[arg(long, short)]
    pub(crate) mine: bool,

    /// Only those of this queue
    #[arg(long, value_name = "QUEUE")]
    pub(crate) queue: Option<String>,

    /// Only those of this array
    #[arg(long, value_name = "JOB", value_parser = job())]
    pub(crate) array: Option<i64>,

    /// At most so many: of those that ended, the last ones
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u32>,

    /// Show the jobs again and again, every 2 s or as often as said
    #[arg(
        long,
        short,
        value_name = "PERIOD",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2s",
        value_parser = length_of_time,
        conflicts_with = "json"
    )]
    pub(crate) watch: Option<u64>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// The job
    #[arg(value_parser = job())]
    pub(crate) job: i64,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct JobsArgs {
    /// The jobs
    #[arg(value_name = "JOB", required = true, value_parser = job())]
    pub(crate) jobs: Vec<i64>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,

    /// All jobs of the arrays whose numbers these are
    #[arg(long)]
    pub(crate) array: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExtendArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,

    /// By how much: seconds, or 15min, 2h, 1d
    #[arg(value_name = "TIME", value_parser = length_of_time)]
    pub(crate) by: u64,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The job
    #[arg(value_parser = job())]
    pub(crate) job: i64,

    /// Go on until the job has ended, and end then
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// Its errors, not its output
    #[arg(long, short)]
    pub(crate) error: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

/// The options of a request about the daemon itself.
#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DrainArgs {
    /// Start jobs again
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
            Command::Queue(args) => args.json,
            Command::Show(JobArgs { json, .. })
            | Command::Extend(ExtendArgs { job: JobArgs { json, .. }, .. }) => *json,
            Command::Wait(args) | Command::Hold(args) | Command::Release(args) | Command::Requeue(args) => {
                args.json
            }
            Command::Cancel(args) => args.jobs.json,
            Command::Pools(args) | Command::Status(args) => args.json,
            Command::Drain(args) => args.ask.json,
            _ => false,
        }
    }
}

/// Returns the parser of a job number.
fn job() -> clap::builder::RangedI64ValueParser<i64> {
    value_parser!(i64).range(1..)
}
