//! The command line of the daemon.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use miserly_policies::PolicySpec;

use super::socket::DaemonArgs;
use super::values::past;

#[derive(Clone, Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Each is a flag of its own.
pub(crate) struct ServeArgs {
    /// The configuration file [default: one queue with half of the machine's processors and memory]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Checks a configuration file, prints its settings, and exits
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "recover", "verify", "restore", "sweep"])]
    pub(crate) check: Option<PathBuf>,

    /// Writes a configuration for this machine, with comments, and exits; a file that exists is not replaced
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "miserly.toml",
        conflicts_with_all = ["config", "check", "recover", "verify", "restore", "sweep", "release"])]
    pub(crate) init: Option<PathBuf>,

    /// Starts even if another daemon has the same processors; jobs of both share them
    #[arg(long)]
    pub(crate) share_cpus: bool,

    /// The folder of the daemon's state [default: from the configuration]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,

    /// The socket of the daemon [default: from the configuration]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,

    /// Restores a damaged state from its readable parts and the newest backup, and lists the losses; damaged files are kept
    #[arg(long)]
    pub(crate) recover: bool,

    /// Replaces the state by a backup, and lists the losses; the present files are kept
    #[arg(long, value_name = "FILE", conflicts_with = "recover")]
    pub(crate) restore: Option<PathBuf>,

    /// Ends the jobs that run and that the state does not have [default: they run until the ends of their windows]
    #[arg(long)]
    pub(crate) sweep: bool,

    /// Checks the whole state before the start, and does not start if any of it is damaged [default: the history is checked while
    /// the daemon runs]
    #[arg(long)]
    pub(crate) verify: bool,

    /// Gets its executor from the service on this socket, and is started as the user of the configuration [default: is started as
    /// root with `user`, and starts its own]
    #[arg(long, value_name = "PATH", conflicts_with_all = ["check", "release"])]
    pub(crate) executor: Option<PathBuf>,

    /// Serves executors to daemons with --executor on this socket, as root, and is no daemon itself
    #[arg(long, value_name = "PATH", requires = "config", conflicts_with_all = ["executor", "check", "recover", "verify", "restore",
        "sweep", "release"])]
    pub(crate) serve_executor: Option<PathBuf>,

    /// Undoes what a daemon with `cgroup = "systemd"` left, and exits: other programs run on all processors again, and memory is kept
    /// for jobs no longer. Jobs run on. For the removal of the program; the daemon must not run
    #[arg(long, conflicts_with_all = ["check", "recover", "verify", "restore", "sweep"])]
    pub(crate) release: bool,

    /// Prints the settings as JSON
    #[arg(long, requires = "check")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The folder of a daemon's state, also while it runs [default: that of the daemon of MISERLY_SOCKET, else of this user]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,

    /// Begins at the newest checkpoint of the journal at or before this instant: 2026-03-01T08:00 [default: all of the journal]
    #[arg(long, value_name = "WHEN", value_parser = past)]
    pub(crate) from: Option<Timestamp>,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShadowArgs {
    #[command(subcommand)]
    pub(crate) command: ShadowCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ShadowCommand {
    /// Compares the starts on the machine with those in the shadow, by day, user and size
    Report(ShadowReportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ShadowReportArgs {
    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,

    /// Leaves out the jobs that were submitted before this instant: 2026-03-01T08:00
    #[arg(long, value_name = "WHEN", value_parser = past)]
    pub(crate) since: Option<Timestamp>,

    /// Limits the report to a queue
    #[arg(long, value_name = "QUEUE")]
    pub(crate) queue: Option<String>,

    /// Takes this policy for the whole journal of a state, in place of the shadows of the configuration; for operators
    #[arg(long, short, value_name = "POLICY", conflicts_with = "socket")]
    pub(crate) policy: Option<PolicySpec>,

    /// The folder of a daemon's state, also while it runs [default: that of the daemon of MISERLY_SOCKET, else of this user]
    #[arg(long, value_name = "FOLDER", requires = "policy")]
    pub(crate) state: Option<PathBuf>,

    /// Prints JSON; times are in seconds
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The folder of the backups; it is created if it is missing
    #[arg(value_name = "FOLDER")]
    pub(crate) to: PathBuf,

    /// The folder of a daemon's state, also while it runs [default: that of the daemon of MISERLY_SOCKET, else of this user]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ShimArgs {
    /// The folder of the attempt
    pub(crate) dir: PathBuf,
}
