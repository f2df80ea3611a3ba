//! The command line.

// The rustdoc comments here are the help texts. Backticks would be shown, and brackets are not
// links.
#![allow(clippy::doc_markdown, rustdoc::broken_intra_doc_links)]

mod daemon;
mod export;

mod import;

mod live;

mod reproduce;
mod slurm;
mod source;
mod ui;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use miserly_api::submit::memory;
use miserly_core::{EventOrder, Procs, Sharing, Span, Spread};
use miserly_experiments::experiment::Part;
use miserly_machine_file::HOSTS_MOST;
use miserly_policies::PolicySpec;
use miserly_policies::shared::Profile;
use miserly_report::TableStyle;
use miserly_sim::Grouping;
use miserly_units::{UnitError, parse_duration_from, parse_seconds};
use miserly_workload::o2k::Month;
use miserly_workload::{ArrivalScaling, Estimates, Factor, FieldFilter, MOST_SHAKE, Overrun, ProcsField};

use crate::colour::{ColourArg, colours};
use crate::output::width;

pub(crate) use self::daemon::{
    BackupArgs, ReplayArgs, ServeArgs, ShadowArgs, ShadowCommand, ShadowReportArgs, ShimArgs,
};
pub(crate) use self::export::{ExportArgs, ExportFormat};
pub(crate) use self::import::{ImportArgs, ImportCommand, SlurmArgs, WrittenArgs};
pub(crate) use self::live::{
    AddArgs, AllocArgs, AskArgs, AttachArgs, CancelArgs, Column, DaemonArgs, DrainArgs, EventsArgs,
    ExtendArgs, HookArgs, HookEvent, JobList, JobsArgs, LogsArgs, ModifyArgs, QueueArgs, ReleaseArgs,
    RemoveArgs, ReservationArgs, ReservationCommand, RunJobArgs, ShowArgs, SignalArgs, SortKey, StateFilter,
    SubmitArgs, TakeBackArgs, TopArgs, UsageArgs, UsageBy,
};
pub(crate) use self::reproduce::{KernelArgs, KernelName, ReproduceArgs};
pub(crate) use self::slurm::{
    FutureArgs, PeriodArgs, SlurmAuditArgs, SlurmClusterArgs, SlurmCommand, SlurmDriveArgs,
    SlurmForecastArgs, SlurmHandBackArgs, SlurmLogArgs, SlurmQueueArgs, SlurmShadowArgs, SlurmStatusArgs,
    SlurmTwinArgs, SlurmWatchArgs,
};
pub(crate) use self::source::SourceArgs;
pub(crate) use self::ui::UiArgs;

/// A scheduler for parallel batch jobs: simulates job logs under many policies, and runs jobs on this machine
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// When to use colours; auto: on a terminal, unless NO_COLOR or CLICOLOR=0 is set
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t = ColourArg::Auto,
        display_order = 900
    )]
    pub(crate) color: ColourArg,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulates one policy on a job log and prints the measures
    Simulate(SimulateArgs),
    /// Simulates several policies on the same logs and prints them side by side
    Compare(CompareArgs),
    /// Estimates how long a job of a given size and time would wait, by policy, or asks the daemon
    WaitOf(WaitOfArgs),
    /// Forecasts the start of each job of a log at its submission, and audits the forecasts
    Forecast(ForecastArgs),
    /// Answers what a log's schedule would be with a further job, another policy, machine or load, or without a user
    WhatIf(Box<WhatIfArgs>),
    /// Explains the events of one job: submission, reservations, jobs that passed it, start and its reason
    Explain(ExplainArgs),
    /// Draws the slots of the Ousterhout matrix at an instant of a run
    Matrix(MatrixArgs),
    /// Lists the policies and the queue orders, or shows one of them
    Policies(PoliciesArgs),
    /// Describes, checks, generates and imports job logs
    Workload(WorkloadArgs),
    /// Runs an experiment: a file that lists logs, policies, estimates, tables and charts
    Experiment(ExperimentArgs),
    /// Repeats the experiments of a paper and prints its tables with both values and their difference
    Reproduce(ReproduceArgs),
    /// Writes the page of an experiment's results
    Report(ReportArgs),
    /// Schedules jobs on this machine; each accepted job gets a promised start and end
    Daemon(ServeArgs),
    /// Tells what another policy would have done on the daemon's queues
    Shadow(ShadowArgs),
    /// Reads a Slurm cluster, forecasts its starts, and schedules it by a policy
    Slurm(SlurmClusterArgs),
    /// Replays the daemon's journal in the simulator and compares every decision
    Replay(ReplayArgs),
    /// Supervises one attempt of a job; started by the daemon
    #[command(hide = true)]
    Shim(ShimArgs),
    /// Runs a program that miserly reproduce miser-1999 measures
    #[command(hide = true)]
    Kernel(KernelArgs),
    /// Submits a job or an array to the daemon and prints the promise
    Submit(Box<SubmitArgs>),
    /// Runs a job with this command's input and output, or on this terminal, and exits with its exit code
    Run(Box<RunJobArgs>),
    /// Opens a shell in a window of its own, on this terminal
    Alloc(Box<AllocArgs>),
    /// Attaches to the terminal or the input of a job that runs
    ///
    /// A client that is attached is replaced. Enter ~ . detaches from a terminal, also Enter ~ d, since ssh takes the former.
    Attach(AttachArgs),
    /// Lists jobs with their promises
    Queue(QueueArgs),
    /// Shows pools, a chart and jobs on the terminal, until a key ends it
    ///
    /// The key ? lists the keys. Requests such as cancel tell their effect first, and wait for a confirmation.
    Top(Box<TopArgs>),
    /// Serves a live page: past, present and promised future in one picture
    Ui(Box<UiArgs>),
    /// Shows jobs: their states, their promises, and why they wait
    Show(ShowArgs),
    /// Prints the output of jobs
    Logs(LogsArgs),
    /// Waits until jobs have ended and exits with their exit code
    Wait(JobsArgs),
    /// Ends running jobs and withdraws waiting ones
    Cancel(CancelArgs),
    /// Holds waiting jobs; they lose their windows
    Hold(TakeBackArgs),
    /// Releases held jobs; they get new windows
    Release(ReleaseArgs),
    /// Ends running jobs and queues them again
    Requeue(TakeBackArgs),
    /// Extends the windows of jobs, unless that breaks a promise
    Extend(ExtendArgs),
    /// Sends a signal to running jobs
    Signal(SignalArgs),
    /// Stops running jobs in their windows, which go on; resume lets them continue
    Pause(JobsArgs),
    /// Lets paused jobs continue
    Resume(JobsArgs),
    /// Changes waiting jobs: time, processors, memory, queue, name, bounds, place; unless that breaks a promise
    ///
    /// On a terminal it shows the new promise and asks first. A job that requests no more than before keeps its place in the
    /// queue. Any other counts as submitted now.
    Modify(Box<ModifyArgs>),
    /// Draws the free resources of each pool over time
    Pools(AskArgs),
    /// Reserves resources for users or groups at some times
    Reservation(ReservationArgs),
    /// Shows the limits of your jobs, and their use
    Limits(AskArgs),
    /// Sums up what the finished jobs of the daemon had and used, by user, queue, name, day or month
    Usage(UsageArgs),

    /// Shows the state of the daemon
    Status(AskArgs),
    /// Prints the unfinished jobs, and then each change of a job, as lines of JSON
    ///
    /// It runs until the daemon ends.
    Events(EventsArgs),

    /// Runs a program at each event of jobs: a mail at the end, a message when a promise moves
    ///
    /// It runs until it is interrupted, beside the daemon, which never waits for it. A failure of the program is reported. After a
    /// break of the connection it goes on where it was.
    Hook(HookArgs),

    /// Prints the metrics of the daemon for Prometheus
    ///
    /// They name queues, and no users and no jobs.
    Metrics(DaemonArgs),
    /// Stops the daemon from accepting jobs; it keeps its promises
    Drain(DrainArgs),

    /// Ends the daemon; its jobs continue
    ///
    /// The command returns when the daemon has ended. Only the daemon's user and root can end it.
    Stop(DaemonArgs),

    /// Lets the daemon read its configuration again
    ///
    /// The log of the daemon has the outcome. Only the daemon's user and root can do this.
    Reload(DaemonArgs),
    /// Writes the history of the daemon's jobs as a log or a table
    Export(ExportArgs),

    /// Writes a checked copy of the daemon's state, also while the daemon runs
    ///
    /// It prints the path of the copy. `miserly daemon --restore FILE` restores it.
    Backup(BackupArgs),
    /// Prints the completion script of a shell
    Completions(CompletionsArgs),
    /// Prints the manual page of the program or of a command
    Man(ManArgs),
}

/// The options for running a log, shared by every command that runs one.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Simulation options")]
pub(crate) struct RunArgs {
    /// The processors of the machine; simulate and compare take a list [default: MaxProcs of the log, else MaxNodes]
    #[arg(long, value_name = "N", value_parser = procs(), value_delimiter = ',', allow_negative_numbers = true)]
    pub(crate) procs: Vec<Procs>,

    /// The machine: o2k (the NCSA Origin 2000), a number of processors, or a machine file (docs/machines.md)
    #[arg(long, value_name = "MACHINE", conflicts_with = "procs")]
    pub(crate) machine: Option<String>,

    /// The number of hosts that a job may use [default: from the machine file]
    #[arg(long, value_enum, requires = "machine")]
    pub(crate) span: Option<SpanArg>,

    /// Whether jobs share hosts [default: from the machine file]
    #[arg(long, value_enum, requires = "machine")]
    pub(crate) sharing: Option<SharingArg>,

    /// The estimates that the policy sees: trace[*F], exact[*R], uniform:R or uniform:R:mean
    ///
    /// trace: the estimates of the log, times F. exact: the actual runtimes, times R. uniform:R: drawn between the
    /// runtime T and 2RT, and exact at R = 1. uniform:R:mean: drawn between T and (2R-1)T. The default is trace, and
    /// uniform:5 for the generated workload of compare.
    #[arg(long, value_name = "MODEL")]
    pub(crate) estimates: Option<Estimates>,

    /// The treatment of a job that reaches the estimate of the log
    #[arg(long, value_enum, default_value_t = OverrunArg::Kill)]
    pub(crate) overrun: OverrunArg,

    /// The order in which the events of one instant reach the policy
    #[arg(long, value_enum, default_value_t = EventOrderArg::Batched)]
    pub(crate) event_order: EventOrderArg,

    /// The field with the width of a job, if the log has both
    #[arg(long, value_enum, default_value_t = ProcsFieldArg::Allocated)]
    pub(crate) procs_field: ProcsFieldArg,

    /// Leaves out the jobs that meet a condition on fields of the log, such as 'runtime<=0'; repeatable
    ///
    /// Fields: job, submit, wait, runtime, allocated, cpu_time, used_memory, requested_procs, estimate,
    /// requested_memory, status, user, group, executable, queue, partition, preceding_job, think_time. The value
    /// -1 means unknown.
    #[arg(long, value_name = "FILTER")]
    pub(crate) drop: Vec<FieldFilter>,

    /// Skips and counts malformed lines instead of stopping at the first
    #[arg(long)]
    pub(crate) lenient: bool,

    /// Selects jobs submitted at T or later, in log time: seconds, or 90min, 12h, 7d (docs/units.md)
    #[arg(long, value_name = "T", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) from: Option<i64>,

    /// Selects jobs submitted before T, in log time: seconds, or 90min, 12h, 7d
    #[arg(long, value_name = "T", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) to: Option<i64>,

    /// Selects the jobs of these users, by number or by a name in the header, separated by commas; repeatable
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_negative_numbers = true)]
    pub(crate) user: Vec<String>,

    /// Selects the jobs of these queues, by number or by a name in the header, separated by commas; repeatable
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_negative_numbers = true)]
    pub(crate) queue: Vec<String>,

    /// Divides the times between submissions by F, which multiplies the load by F; simulate and compare take a list
    #[arg(
        long,
        value_name = "F",
        conflicts_with = "offline",
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    pub(crate) scale_load: Vec<Factor>,

    /// Submits all jobs at time 0, in the order of their numbers
    #[arg(long)]
    pub(crate) offline: bool,

    /// Moves each submission at random by up to D, at most 1 d; each seed has moves of its own
    #[arg(long, value_name = "D", value_parser = shake, conflicts_with = "offline", allow_negative_numbers = true, default_value = "0")]
    pub(crate) shake: u32,

    /// Excludes jobs submitted within D of the first one from the measures: seconds, or 90min, 12h, 7d
    #[arg(long, value_name = "D", value_parser = seconds, allow_negative_numbers = true, default_value = "0")]
    pub(crate) warmup: i64,

    /// The seed of the random numbers
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) seed: u64,

    /// Runs opportunistic jobs, and parks them D before a promised start: seconds, or 90min, 12h, 7d
    ///
    /// An opportunistic job runs ahead of its promised start on idle resources. Without this option opportunistic jobs
    /// run only on a machine with pools of which a queue has the policy miser, with a lead time of 5 s.
    #[arg(long, value_name = "D", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) preempt_lead_time: Option<i64>,

    /// Runs jobs in their windows only
    #[arg(long, conflicts_with = "preempt_lead_time")]
    pub(crate) no_opportunistic: bool,

    /// The interactive load, as poisson:EVERY:LENGTH:PROCS or a file (docs/machines.md) [default: none]
    #[arg(long, value_name = "LOAD")]
    pub(crate) interactive: Option<String>,
}

/// The options of a page about one or a few runs.
#[derive(Debug, Args)]
pub(crate) struct ReportFileArgs {
    /// Writes a page with tables and charts, as one self-contained HTML file
    #[arg(long, value_name = "FILE.html", value_parser = page_name)]
    pub(crate) report: Option<PathBuf>,

    /// The period of the page's Gantt charts, in log time, such as 2d..3d [default: the day with the longest queue]
    #[arg(long, value_name = "FROM..TO", value_parser = window, requires = "report")]
    pub(crate) window: Option<[i64; 2]>,
}

/// The options of tables.
#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    /// Prints times in seconds, such as 6730.28, instead of 1h52m
    #[arg(long)]
    pub(crate) seconds: bool,
}

impl TableArgs {
    /// Returns how tables print on this output.
    pub(crate) fn style(&self) -> TableStyle {
        TableStyle { width: Some(width()), seconds: self.seconds, colour: colours(&io::stdout()) }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// The job log in the Standard Workload Format, plain or gzipped; - is standard input
    pub(crate) trace: PathBuf,

    /// The policy, such as easy or 'easy(backfill=shortest)'; miserly policies lists all
    #[arg(long, short, value_name = "POLICY")]
    pub(crate) policy: PolicySpec,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    /// Adds measures for each group of jobs; repeatable. Ranges have upper bounds of your own, such as procs:1,8,64,
    /// runtime:1h,12h, or both: procs:1,8,64+runtime:1h,12h (docs/formats.md)
    #[arg(long, value_name = "KIND", value_parser = GroupingParser)]
    pub(crate) by: Vec<Grouping>,

    /// Writes a row for each job: to a .csv with the columns of Batsim, or to a .swf with the simulated fields
    #[arg(long, value_name = "OUT")]
    pub(crate) jobs: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) table: TableArgs,

    #[command(flatten)]
    pub(crate) report: ReportFileArgs,

    /// Prints JSON (docs/simulate.schema.json)
    #[arg(long)]
    pub(crate) json: bool,

    /// Adds the distributions of the measures and the time series to the JSON
    #[arg(long, requires = "json")]
    pub(crate) details: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The job logs in the Standard Workload Format, plain or gzipped [default: a generated workload]
    #[arg(value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,

    /// A policy, such as easy; repeatable [default: a representative set]
    #[arg(long, short, value_name = "POLICY")]
    pub(crate) policy: Vec<PolicySpec>,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    #[command(flatten)]
    pub(crate) table: TableArgs,

    #[command(flatten)]
    pub(crate) report: ReportFileArgs,

    /// Adds measures for each group of jobs; repeatable. Ranges have upper bounds of your own, such as procs:1,8,64,
    /// runtime:1h,12h, or both: procs:1,8,64+runtime:1h,12h (docs/formats.md)
    #[arg(long, value_name = "KIND", value_parser = GroupingParser)]
    pub(crate) by: Vec<Grouping>,

    /// Shows on the page which jobs start earlier or later under B than under A [default: easy and the best]
    ///
    /// Both are policies of the comparison. The default of A is easy, else the first policy. The default of B is the
    /// other policy with the shortest mean wait.
    #[arg(long, value_names = ["A", "B"], num_args = 2, requires = "report")]
    pub(crate) difference: Vec<PolicySpec>,

    /// Writes a .csv with a row for each job into a folder, for each log and policy
    #[arg(long, value_name = "DIR")]
    pub(crate) jobs: Option<PathBuf>,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(override_usage = "miserly wait-of [OPTIONS] <TRACE> <SIZE> <TIME>
       miserly wait-of [--queue <QUEUE>] [--memory <SIZE>] [--json] --daemon <SIZE> <TIME>")]
pub(crate) struct WaitOfArgs {
    /// The job log in the Standard Workload Format, plain or gzipped; - is standard input
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

#[derive(Debug, Args)]
pub(crate) struct ForecastArgs {
    /// The job log in the Standard Workload Format, plain or gzipped; - is standard input. Without a policy: the number of
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
    /// The job log in the Standard Workload Format, plain or gzipped; - is standard input. Without a log the question is
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

    /// The copies of the log with moved submissions, which show how sure the difference is; 0: none
    #[arg(long, value_name = "N", default_value_t = 20, requires = "trace", value_parser = value_parser!(u64).range(..=1000))]
    pub(crate) copies: u64,

    /// Writes a .csv with a row for each job: its waits, their difference and its range, in seconds
    #[arg(long, value_name = "OUT", requires = "trace")]
    pub(crate) jobs: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) table: TableArgs,

    /// Prints JSON; times are in seconds
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is changed; several changes act together.
#[derive(Debug, Args)]
#[command(next_help_heading = "Changes")]
pub(crate) struct ChangeArgs {
    /// Adds a job of N processors
    #[arg(long, value_name = "N", value_parser = procs(), requires = "time", allow_negative_numbers = true)]
    pub(crate) cpus: Option<Procs>,

    /// The time limit of the added job, such as 4h
    #[arg(long, value_name = "TIME", value_parser = job_time, requires = "cpus")]
    pub(crate) time: Option<Span>,

    /// The runtime of the added job [default: its time limit]
    #[arg(long, value_name = "TIME", value_parser = job_time, requires_all = ["cpus", "trace"])]
    pub(crate) runtime: Option<Span>,

    /// The memory of the added job, such as 8GiB [default: none]
    #[arg(long, value_name = "SIZE", value_parser = memory, requires = "cpus")]
    pub(crate) memory: Option<u64>,

    /// The submission of the added job, in log time: seconds, or 90min, 12h, 7d [default: that of the last job]
    #[arg(long, value_name = "T", value_parser = seconds, requires_all = ["cpus", "trace"], allow_negative_numbers = true)]
    pub(crate) at: Option<i64>,

    /// Gives the machine N processors; without a log, the queue
    #[arg(long, value_name = "N", value_parser = procs(), allow_negative_numbers = true)]
    pub(crate) new_procs: Option<Procs>,

    /// Replaces the machine: a built-in name, a number of processors, or a machine file (docs/machines.md)
    #[arg(long, requires = "trace", value_name = "MACHINE", conflicts_with_all = ["new_procs", "add_hosts", "lose"])]
    pub(crate) new_machine: Option<String>,

    /// Adds hosts to the machine: a number, or KIND=N where it has several kinds of hosts
    #[arg(long, requires = "trace", value_name = "N", value_parser = added_hosts, conflicts_with = "new_procs")]
    pub(crate) add_hosts: Option<(Option<String>, u32)>,

    /// Removes hosts from the machine, by name, separated by commas; repeatable
    #[arg(
        long,
        requires = "trace",
        value_name = "HOST",
        value_delimiter = ',',
        conflicts_with = "new_procs"
    )]
    pub(crate) lose: Vec<String>,

    /// Multiplies the load by F: divides the times between submissions
    #[arg(
        long,
        requires = "trace",
        value_name = "F",
        conflicts_with = "offline",
        allow_negative_numbers = true
    )]
    pub(crate) load: Option<Factor>,

    /// Leaves out the jobs of these users, by number or by a name in the header, separated by commas; repeatable
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_negative_numbers = true)]
    pub(crate) without_user: Vec<String>,
}

/// Parses hosts to add: `N`, or `KIND=N`.
fn added_hosts(text: &str) -> Result<(Option<String>, u32), String> {
    let (kind, number) =
        text.rsplit_once('=').map_or((None, text), |(kind, number)| (Some(kind.to_owned()), number));
    let number = number.parse().ok().filter(|number| (1..=HOSTS_MOST).contains(&u64::from(*number)));
    let problem = || format!("must be a number of hosts, 1 to {HOSTS_MOST}, or KIND=N");
    Ok((kind, number.ok_or_else(problem)?))
}

/// The arguments of `wait-of` that a question to the daemon does not take.
const SIMULATION_ONLY: [&str; 23] = [
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
];

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The job log in the Standard Workload Format, plain or gzipped; - is standard input
    pub(crate) trace: PathBuf,

    /// The job number: field 1 of the log
    #[arg(value_name = "JOB", value_parser = job_number)]
    pub(crate) job: i64,

    /// The policy, such as easy or 'easy(backfill=shortest)'; miserly policies lists all
    #[arg(long, short, value_name = "POLICY")]
    pub(crate) policy: PolicySpec,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    /// Prints times in seconds of the log, instead of dates
    #[arg(long)]
    pub(crate) seconds: bool,

    /// Prints JSON; times are in seconds of the log
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MatrixArgs {
    /// The job log in the Standard Workload Format, plain or gzipped; - is standard input
    pub(crate) trace: PathBuf,

    /// The instant, in log time, after all its events: seconds, or 90min, 12h, 7d
    #[arg(value_name = "TIME", value_parser = seconds)]
    pub(crate) time: i64,

    /// A policy with time slices, such as 'gang(packing=best-fit)'
    #[arg(long, short, value_name = "POLICY")]
    pub(crate) policy: PolicySpec,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PoliciesArgs {
    /// A policy or a queue order to show in detail
    pub(crate) name: Option<String>,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExperimentArgs {
    #[command(subcommand)]
    pub(crate) command: ExperimentCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExperimentCommand {
    /// Makes the missing runs of an experiment file on all cores and prints its tables and claims
    Run(RunExperimentArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunExperimentArgs {
    /// The experiment file, in TOML (docs/experiments.md)
    pub(crate) file: PathBuf,
    /// The folder of the results; runs found there are kept [default: FILE-results]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// The folder of the logs, searched before the folder of the experiment file [default: MISERLY_TRACES]
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: Option<PathBuf>,
    /// Makes only the K-th of N parts of the runs, and no tables: 3/10. Other processes make the other parts
    #[arg(long, value_name = "K/N", value_parser = part, conflicts_with_all = ["on", "json"])]
    pub(crate) part: Option<Part>,
    #[command(flatten)]
    pub(crate) on: OnArgs,
    /// Prints the tables, charts and claims as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where the runs of an experiment are made.
#[derive(Debug, Args)]
pub(crate) struct OnArgs {
    /// Makes the runs on a cluster, as a job array. The program, the file, the logs and the folder are on all nodes
    #[arg(long, value_enum, value_name = "CLUSTER")]
    pub(crate) on: Option<On>,
    /// The partition of the array
    #[arg(long, value_name = "NAME", requires = "on")]
    pub(crate) partition: Option<String>,
    /// A further option of sbatch, such as --mem=4G; may be given several times
    #[arg(long, value_name = "OPTION", requires = "on", allow_hyphen_values = true)]
    pub(crate) sbatch: Vec<String>,
    /// The configuration of the cluster [default: that of Slurm's commands: SLURM_CONF, or the built-in place]
    #[arg(long, value_name = "FILE", requires = "on")]
    pub(crate) slurm_conf: Option<PathBuf>,
}

/// A kind of cluster.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum On {
    /// A Slurm cluster
    Slurm,
}

fn part(text: &str) -> Result<Part, String> {
    let numbers =
        text.split_once('/').and_then(|(number, count)| Some((number.parse().ok()?, count.parse().ok()?)));
    let part = numbers.and_then(|(number, count)| Part::new(number, count));
    part.ok_or_else(|| "K/N, with K from 1 to N".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The folder of an experiment's results
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The command, such as simulate or workload generate [default: the program]
    #[arg(value_name = "COMMAND")]
    pub(crate) commands: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WorkloadArgs {
    #[command(subcommand)]
    pub(crate) command: WorkloadCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkloadCommand {
    /// Describes a log: jobs, load, widths, runtimes, estimates, users, arrivals, unknown fields
    Describe(DescribeArgs),
    /// Lists the anomalies of a log by kind, with line numbers
    Check(CheckArgs),
    /// Generates a log from a model
    Generate(GenerateArgs),
    /// Imports a log from Slurm's accounting or a Batsim workload (docs/import.md)
    Import(ImportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DescribeArgs {
    /// The job logs in the Standard Workload Format, plain or gzipped; - is standard input
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) traces: Vec<PathBuf>,
    /// The processors of the machine [default: MaxProcs of the log, else MaxNodes]
    #[arg(long, value_name = "N", value_parser = procs(), allow_negative_numbers = true)]
    pub(crate) procs: Option<Procs>,
    /// The field with the width of a job, if the log has both
    #[arg(long, value_enum, default_value_t = ProcsFieldArg::Allocated)]
    pub(crate) procs_field: ProcsFieldArg,
    /// An estimate to describe separately: seconds, or 90min, 12h, 7d; repeatable [default: the three commonest]
    #[arg(long, value_name = "T", value_parser = unsigned_seconds)]
    pub(crate) estimate: Vec<u64>,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The job logs in the Standard Workload Format, plain or gzipped; - is standard input
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) traces: Vec<PathBuf>,
    /// The processors of the machine [default: MaxProcs of the log, else MaxNodes]
    #[arg(long, value_name = "N", value_parser = procs(), allow_negative_numbers = true)]
    pub(crate) procs: Option<Procs>,
    /// The field with the width of a job, if the log has both
    #[arg(long, value_enum, default_value_t = ProcsFieldArg::Allocated)]
    pub(crate) procs_field: ProcsFieldArg,
    /// The number of ranges of line numbers to print for each kind; JSON has all
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) lines: usize,
    /// Exits with 1 at any anomaly, not only at errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// The model: feitelson96 (Feitelson 1996, section 3.5), sud or sud-feitelson96 (Zotkin et al. 2000, section 3), o2k
    /// (Chiang and Vernon 2001, section 3; takes --month, but not --jobs, --procs or --load)
    #[arg(long, value_name = "MODEL", default_value = "feitelson96")]
    pub(crate) model: String,
    /// The number of jobs [default: 10000; sud: 18415]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<u64>,
    /// The processors of the machine [default: 128; sud: 256]
    #[arg(long, value_name = "P", value_parser = procs(), allow_negative_numbers = true)]
    pub(crate) procs: Option<Procs>,
    /// The offered load: the work of the jobs over the capacity until the last submission [default: 0.85; sud: 0.765]
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    pub(crate) load: Option<f64>,
    /// The seed of the random numbers; a seed always gives the same bytes [default: 1]
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// The month of o2k, from 1999-10 to 2000-03, after seven days of warm-up [default: 1999-10]
    #[arg(long, value_name = "MONTH")]
    pub(crate) month: Option<Month>,
    /// Submits each repetition of a job after the end of the previous one
    #[arg(long)]
    pub(crate) repeat_after_end: bool,
    /// A parameter of feitelson96, such as size_order=1.2; repeatable. The header of the log lists all
    #[arg(long, value_name = "NAME=VALUE", value_parser = parameter)]
    pub(crate) set: Vec<(String, String)>,
    /// The output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// The parser of a grouping of jobs: a name, which the help lists, or ranges.
#[derive(Clone)]
struct GroupingParser;

impl TypedValueParser for GroupingParser {
    type Value = Grouping;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Grouping, clap::Error> {
        let parse = |word: &str| word.parse::<Grouping>();
        parse.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Grouping::ALL.into_iter().map(|named| PossibleValue::new(named.as_str()))))
    }
}

/// Parses a parameter of a model: its name and its value.
fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("no = found; write NAME=VALUE, such as size_order=1.2")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Returns the parser of a machine size.
fn job_time(text: &str) -> Result<Span, UnitError> {
    parse_duration_from(text, Span::TICK)
}

fn procs() -> impl TypedValueParser<Value = Procs> {
    value_parser!(u32).range(1..=i64::from(Profile::MOST)).map(|procs| Procs::new(procs.into()))
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum OverrunArg {
    /// The job is killed
    Kill,
    /// The estimate is raised to the runtime when the log is read
    Extend,
    /// The job continues, overdue
    Run,
}

impl RunArgs {
    /// Returns the scaling of the submit times.
    pub(crate) fn arrivals(&self) -> ArrivalScaling {
        match self.scale_load.first() {
            _ if self.offline => ArrivalScaling::Offline,
            Some(factor) => ArrivalScaling::Scaled(*factor),
            None => ArrivalScaling::Logged,
        }
    }

    /// Returns the options for each value of the lists: every machine size under every load.
    pub(crate) fn sweep(&self) -> Vec<RunArgs> {
        let sizes = one_each(&self.procs);
        let loads = one_each(&self.scale_load);
        let with = |procs: &Vec<Procs>, scale_load: &Vec<Factor>| RunArgs {
            procs: procs.clone(),
            scale_load: scale_load.clone(),
            ..self.clone()
        };
        sizes.iter().flat_map(|procs| loads.iter().map(move |load| with(procs, load))).collect()
    }

    /// Returns the options for each value of the lists, if the log can be read as often.
    ///
    /// # Errors
    /// If there are several values, and the log is standard input, which can be read once.
    pub(crate) fn sweep_of(&self, trace: &Path) -> anyhow::Result<Vec<RunArgs>> {
        let sweep = self.sweep();
        ensure!(
            trace != Path::new("-") || sweep.len() == 1,
            "-: several runs need a file, not standard input"
        );
        Ok(sweep)
    }

    /// Returns the option that has several values.
    pub(crate) fn swept(&self) -> Option<&'static str> {
        match (self.procs.len(), self.scale_load.len()) {
            (2.., _) => Some("--procs"),
            (_, 2..) => Some("--scale-load"),
            _ => None,
        }
    }
}

/// Parses a number of seconds by which submissions may move.
fn shake(text: &str) -> Result<u32, String> {
    let most = i64::from(MOST_SHAKE);
    let secs = seconds(text).map_err(|error| error.to_string())?;
    u32::try_from(secs).ok().filter(|_| secs <= most).ok_or_else(|| "must be at most 1 d".into())
}

/// Returns a list for each value, or one empty list without values.
fn one_each<T: Clone>(values: &[T]) -> Vec<Vec<T>> {
    if values.is_empty() { vec![vec![]] } else { values.iter().map(|value| vec![value.clone()]).collect() }
}

impl From<OverrunArg> for Overrun {
    fn from(arg: OverrunArg) -> Overrun {
        match arg {
            OverrunArg::Kill => Overrun::Kill,
            OverrunArg::Extend => Overrun::Extend,
            OverrunArg::Run => Overrun::Run,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SpanArg {
    /// One host
    One,
    /// Any number of hosts; each processor has its part of the memory
    Any,
}

impl From<SpanArg> for Spread {
    fn from(arg: SpanArg) -> Spread {
        match arg {
            SpanArg::One => Spread::One,
            SpanArg::Any => Spread::Any,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SharingArg {
    /// Jobs share hosts
    Shared,
    /// Each job has whole hosts
    Whole,
}

impl From<SharingArg> for Sharing {
    fn from(arg: SharingArg) -> Sharing {
        match arg {
            SharingArg::Shared => Sharing::Shared,
            SharingArg::Whole => Sharing::Whole,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EventOrderArg {
    /// All terminations, submissions and timers, then one pass
    Batched,
    /// One pass for each event, as in pyss
    Sequential,
}

impl From<EventOrderArg> for EventOrder {
    fn from(arg: EventOrderArg) -> EventOrder {
        match arg {
            EventOrderArg::Batched => EventOrder::Batched,
            EventOrderArg::Sequential => EventOrder::Sequential,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ProcsFieldArg {
    /// Field 5, else field 8
    Allocated,
    /// Field 8, else field 5
    Requested,
}

impl From<ProcsFieldArg> for ProcsField {
    fn from(arg: ProcsFieldArg) -> ProcsField {
        match arg {
            ProcsFieldArg::Allocated => ProcsField::Allocated,
            ProcsFieldArg::Requested => ProcsField::Requested,
        }
    }
}

/// Parses the number of a job.
fn job_number(text: &str) -> Result<i64, &'static str> {
    text.parse().map_err(|_| "the job must be a number: field 1 of its line")
}

/// Parses the name of a page. Its ending is .html, so it cannot be a log.
fn page_name(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    let html = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("html"));
    if html { Ok(path) } else { Err("the file name must end in .html") }
}

/// Parses a window: two times with two points between them.
fn window(text: &str) -> Result<[i64; 2], String> {
    let (from, to) = text.split_once("..").ok_or("no .. found; write FROM..TO, such as 2d..3d")?;
    let time = |text: &str| seconds(text).map_err(|problem| problem.to_string());
    let (from, to) = (time(from)?, time(to)?);
    if from < to { Ok([from, to]) } else { Err("the end of the window must be after its start".into()) }
}

/// Parses a duration, as an unsigned number of seconds.
fn unsigned_seconds(text: &str) -> Result<u64, UnitError> {
    seconds(text).map(i64::unsigned_abs)
}

/// Parses a duration in whole seconds.
fn seconds(text: &str) -> Result<i64, UnitError> {
    parse_seconds(text, Span::ZERO)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
