//! The arguments of questions about waits: `miserly wait-of`, `forecast` and `what-if`.

use std::path::PathBuf;

use clap::{Args, value_parser};
use miserly_core::{Procs, Span};
use miserly_policies::PolicySpec;
use miserly_questions::ChangeArgs;
use miserly_units::parse_memory as memory;
use miserly_workload::Feedback;

use super::run::{FEEDBACKS, RunArgs};
use super::tables::{By, ExportedTableArgs, GroupingParser, TableArgs};
use super::values::{job_time, page_name, procs, words};

#[derive(Debug, Args)]
#[command(override_usage = "miserly wait-of [OPTIONS] <TRACE> <SIZE> <TIME>
       miserly wait-of [--queue <QUEUE>] [--memory <SIZE>] [--json] --daemon <SIZE> <TIME>")]
pub(crate) struct WaitOfArgs {
    /// The job log or the accounting of a cluster, plain or gzipped; - is standard input
    #[arg(required_unless_present = "daemon")]
    pub(crate) trace: Option<PathBuf>,

    /// The processors of the job
    #[arg(
        value_name = "SIZE",
        value_parser = procs(),
        allow_negative_numbers = true,
        required_unless_present = "daemon"
    )]
    pub(crate) size: Option<Procs>,

    /// The time limit of the job, such as 4h
    #[arg(value_name = "TIME", value_parser = job_time, required_unless_present = "daemon")]
    pub(crate) time: Option<Span>,

    /// Asks the daemon for the promise to a job of this size and time, if it were submitted now; submits nothing
    #[arg(
        long,
        num_args = 2,
        value_names = ["SIZE", "TIME"],
        conflicts_with_all = SIMULATION_ONLY,
        help_heading = "Options of a question to the daemon"
    )]
    pub(crate) daemon: Option<Vec<String>>,

    /// The memory of the job, such as 8GiB [default: from the queue of the daemon]
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = memory,
        help_heading = "Options of a question to the daemon"
    )]
    pub(crate) memory: Option<u64>,

    /// The socket of the daemon [default: MISERLY_SOCKET, else $XDG_RUNTIME_DIR/miserly/socket, else /run/miserly/socket]
    #[arg(long, value_name = "SOCKET", help_heading = "Options of a question to the daemon")]
    pub(crate) socket: Option<PathBuf>,

    /// A policy; repeatable; the default is the set of miserly compare
    #[arg(long, short, value_name = "POLICY")]
    pub(crate) policy: Vec<PolicySpec>,

    /// The number of submit times, at equal distances over the log
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = value_parser!(u32).range(1..=100_000))]
    pub(crate) samples: u32,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    #[command(flatten)]
    pub(crate) table: TableArgs,

    /// Prints JSON; times are in seconds
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `wait-of` that a question to the daemon does not take.
const SIMULATION_ONLY: [&str; 31] = [
    "trace",
    "policy",
    "samples",
    "seconds",
    "procs",
    "machine",
    "estimates",
    "overrun",
    "event_order",
    "procs_field",
    "drop",
    "keep",
    "lenient",
    "from",
    "to",
    "user",
    "scale_load",
    "offline",
    "shake",
    "warmup",
    "seed",
    "preempt_lead_time",
    "no_opportunistic",
    "interactive",
    "time_zone",
    "cpus_per_node",
    "delimiter",
    "submit_at",
    "preset",
    "columns",
    "missing_fields",
];

#[derive(Debug, Args)]
pub(crate) struct ForecastArgs {
    /// The job log or the accounting of a cluster, plain or gzipped; - is standard input. Without a policy: the number of
    /// a waiting job of the daemon
    #[arg(value_name = "TRACE|JOB")]
    pub(crate) trace: PathBuf,

    /// The policy, such as easy or conservative; it starts each job once
    #[arg(long, short, value_name = "POLICY")]
    pub(crate) policy: Option<PolicySpec>,

    /// The socket of the daemon [default: MISERLY_SOCKET, else $XDG_RUNTIME_DIR/miserly/socket, else /run/miserly/socket]
    #[arg(long, value_name = "SOCKET", conflicts_with = "policy")]
    pub(crate) socket: Option<PathBuf>,

    /// The number of futures with likely runtimes that are simulated for each job that waits
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) draws: u64,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    /// Writes a .csv with a row for each job: its bounds, its promise and its wait, in seconds
    #[arg(long, value_name = "OUT")]
    pub(crate) jobs: Option<PathBuf>,

    /// Writes a page with the calibration and the tables, as one self-contained HTML file
    #[arg(long, value_name = "FILE.html", value_parser = page_name)]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) table: TableArgs,

    /// Prints JSON; times are in seconds
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WhatIfArgs {
    /// The job log or the accounting of a cluster, plain or gzipped; - is standard input. Without a log the question is
    /// about the waiting jobs of the daemon, with one change: a job, a policy, or a user less
    pub(crate) trace: Option<PathBuf>,

    /// The policy; a second one is the change: it runs in place of the first. Without a log, the one is the change
    #[arg(long, short, value_name = "POLICY")]
    pub(crate) policy: Vec<PolicySpec>,

    /// The socket of the daemon [default: MISERLY_SOCKET, else $XDG_RUNTIME_DIR/miserly/socket, else /run/miserly/socket]
    #[arg(long, value_name = "SOCKET", conflicts_with = "trace")]
    pub(crate) socket: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) change: ChangeArgs,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    /// Submits jobs some time after the simulated end of an earlier job of their user, in both runs
    #[arg(long, value_name = "BY", requires = "trace", value_parser = words(&FEEDBACKS))]
    pub(crate) feedback: Option<Feedback>,

    /// The groups of jobs in the table, as in compare [default: ranges that suit the log]
    #[arg(long, value_name = "KIND", requires = "trace", value_parser = GroupingParser)]
    pub(crate) by: Option<By>,

    /// The copies of the log with moved submissions, which show how sure the difference is; 0: none
    #[arg(long, value_name = "N", default_value_t = 20, requires = "trace", value_parser = value_parser!(u64).range(..=1000))]
    pub(crate) copies: u64,

    /// Writes a .csv with a row for each job: its waits, their difference and its range, in seconds
    #[arg(long, value_name = "OUT", requires = "trace")]
    pub(crate) jobs: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) table: ExportedTableArgs,

    /// Prints JSON; times are in seconds
    #[arg(long)]
    pub(crate) json: bool,
}
