//! The command line.

// The rustdoc comments here are the help texts. Backticks would be shown, and brackets are no
// links.
#![allow(clippy::doc_markdown, rustdoc::broken_intra_doc_links)]

mod daemon;
mod export;

mod import;

mod live;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use miserly_core::{EventOrder, Procs, Sharing, Span, Spread};
use miserly_policies::PolicySpec;
use miserly_policies::shared::Profile;
use miserly_report::TableStyle;
use miserly_sim::Grouping;
use miserly_units::{UnitError, parse_duration_from, parse_seconds};
use miserly_workload::o2k::Month;
use miserly_workload::{ArrivalScaling, Estimates, Factor, FieldFilter, Overrun, ProcsField};

use crate::output::width;

pub(crate) use self::daemon::{ReplayArgs, ServeArgs, ShimArgs};
pub(crate) use self::export::{ExportArgs, ExportFormat};
pub(crate) use self::import::{ImportArgs, ImportCommand, SlurmArgs, WrittenArgs};
pub(crate) use self::live::{
    AskArgs, CancelArgs, DaemonArgs, DrainArgs, ExtendArgs, JobArgs, JobsArgs, LogsArgs, QueueArgs,
    SubmitArgs,
};

/// A scheduler for parallel batch jobs: simulate a job log and see what each policy would have made of it
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one policy on a job log and show what became of the jobs
    Simulate(SimulateArgs),
    /// Run several policies on the same logs, side by side
    Compare(CompareArgs),
    /// Estimate how long a job of a given size and time would wait, by policy
    WaitOf(WaitOfArgs),
    /// Tell the story of one job: submitted, reserved, passed, started, and why
    Explain(ExplainArgs),
    /// Draw the slots in which jobs take turns on processors, at an instant of a run
    Matrix(MatrixArgs),
    /// List the policies and the orders by formula, or show one
    Policies(PoliciesArgs),
    /// Look at, check, generate and import job logs
    Workload(WorkloadArgs),
    /// Run an experiment: a file says which logs, policies and estimates, and which tables and charts to make
    Experiment(ExperimentArgs),
    /// Run a paper's experiments and show its tables: ours, the paper's, the difference
    Reproduce(ReproduceArgs),
    /// Make the page of an experiment's results
    Report(ReportArgs),
    /// Schedule jobs on this machine: every accepted job is told a start and an end, and the promise is kept
    Daemon(ServeArgs),
    /// Play the daemon's journal again in the simulator, and tell whether it comes to the same
    Replay(ReplayArgs),
    /// Own one attempt of a job; the daemon calls this
    #[command(hide = true)]
    Shim(ShimArgs),
    /// Submit a job, or an array of them, to the daemon, and get a promise
    Submit(Box<SubmitArgs>),
    /// List jobs with their promises
    Queue(QueueArgs),
    /// Show all about a job: where it stands, what was promised, why it waits
    Show(JobArgs),
    /// Print what a job wrote, and what it writes
    Logs(LogsArgs),
    /// Wait until jobs have ended, and exit as they did
    Wait(JobsArgs),
    /// End jobs, or take them back
    Cancel(CancelArgs),
    /// Keep waiting jobs from running; they give up their windows
    Hold(JobsArgs),
    /// Let held jobs run again; they get new windows
    Release(JobsArgs),
    /// End running jobs and run them again
    Requeue(JobsArgs),
    /// Make a job's window longer, unless that would break a promise
    Extend(ExtendArgs),
    /// Draw what is free from now on
    Pools(AskArgs),
    /// Tell how the daemon is
    Status(AskArgs),
    /// Let the daemon accept no new jobs; what was promised is kept
    Drain(DrainArgs),
    /// Write the history of a daemon's jobs for the simulator, or for other programs
    Export(ExportArgs),
    /// Print the completion script of a shell
    Completions(CompletionsArgs),
    /// Print the manual page, of the program or of a command
    Man(ManArgs),
}

/// The options for running a log, shared by every command that runs one.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "How the log is run")]
pub(crate) struct RunArgs {
    /// The machine's processors, in place of the log's MaxProcs or MaxNodes
    #[arg(long, value_name = "N", value_parser = procs())]
    pub(crate) procs: Option<Procs>,

    /// The machine: o2k (the NCSA Origin 2000), a number of processors, or a file of its hosts (docs/machines.md)
    #[arg(long, value_name = "MACHINE", conflicts_with = "procs")]
    pub(crate) machine: Option<String>,

    /// Over how many hosts a job may lie, in place of what the machine says
    #[arg(long, value_enum, requires = "machine")]
    pub(crate) span: Option<SpanArg>,

    /// Whether jobs share hosts, in place of what the machine says
    #[arg(long, value_enum, requires = "machine")]
    pub(crate) sharing: Option<SharingArg>,

    /// What the policy is told of the runtimes: trace[*F], exact[*R], uniform:R or uniform:R:mean
    ///
    /// trace: the log's own estimates, times F. exact: the true runtimes, times R. uniform:R: drawn between the
    /// runtime T and 2RT (exact at R = 1); uniform:R:mean: between T and (2R-1)T.
    #[arg(long, value_name = "MODEL")]
    pub(crate) estimates: Option<Estimates>,

    /// What happens to a job that reaches the log's own estimate
    #[arg(long, value_enum, default_value_t = OverrunArg::Kill)]
    pub(crate) overrun: OverrunArg,

    /// How the events of one instant reach the policy
    #[arg(long, value_enum, default_value_t = EventOrderArg::Batched)]
    pub(crate) event_order: EventOrderArg,

    /// Which field is a job's size, where both are known
    #[arg(long, value_enum, default_value_t = ProcsFieldArg::Allocated)]
    pub(crate) procs_field: ProcsFieldArg,

    /// Leave out jobs whose fields, as the log has them, meet a condition such as 'runtime<=0'; repeatable
    ///
    /// The fields: job, submit, wait, runtime, allocated, cpu_time, used_memory, requested_procs, estimate,
    /// requested_memory, status, user, group, executable, queue, partition, preceding_job, think_time. -1 is
    /// unknown.
    #[arg(long, value_name = "FILTER")]
    pub(crate) drop: Vec<FieldFilter>,

    /// Skip and count malformed lines instead of stopping at the first
    #[arg(long)]
    pub(crate) lenient: bool,

    /// Only jobs submitted at T or later, on the log's clock: seconds, or 90min, 12h, 7d, 2w (docs/units.md)
    #[arg(long, value_name = "T", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) from: Option<i64>,

    /// Only jobs submitted before T
    #[arg(long, value_name = "T", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) to: Option<i64>,

    /// Only the jobs of these users: numbers, with commas between them; repeatable
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) user: Vec<u32>,

    /// Only the jobs of these queues
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) queue: Vec<u32>,

    /// Raise the load F times: the time since the first submission is divided by F
    #[arg(long, value_name = "F", conflicts_with = "offline", allow_negative_numbers = true)]
    pub(crate) scale_load: Option<Factor>,

    /// Submit all jobs at time 0, in the order of their numbers
    #[arg(long)]
    pub(crate) offline: bool,

    /// Simulate, but do not measure, jobs submitted within D of the first one: seconds, or 12h, 7d
    #[arg(long, value_name = "D", value_parser = seconds, allow_negative_numbers = true, default_value = "0")]
    pub(crate) warmup: i64,

    /// The seed of random draws
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Jobs run on idle processors ahead of their promised starts, and are parked D before: seconds, or 1min
    ///
    /// On a machine with pools, where a queue has the policy miser, they do so in any case, with 5s.
    #[arg(long, value_name = "D", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) parking_lead: Option<i64>,

    /// Jobs run in their windows only
    #[arg(long, conflicts_with = "parking_lead")]
    pub(crate) no_early: bool,

    /// Interactive work, on the processors where jobs run ahead: poisson:EVERY:LENGTH:PROCS, or a file (docs/machines.md)
    #[arg(long, value_name = "LOAD")]
    pub(crate) interactive: Option<String>,
}

/// The options of a page about one or a few runs.
#[derive(Debug, Args)]
pub(crate) struct ReportFileArgs {
    /// Also write a page with tables and charts: one HTML file that needs nothing else
    #[arg(long, value_name = "FILE.html", value_parser = page_name)]
    pub(crate) report: Option<PathBuf>,

    /// The window of the page's Gantt charts, in the log's time, such as 2d..3d; else the day of the longest queue
    #[arg(long, value_name = "FROM..TO", value_parser = window, requires = "report")]
    pub(crate) window: Option<[i64; 2]>,
}

/// The options of tables.
#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    /// Print times in seconds, such as 6730.28, instead of 1h52m
    #[arg(long)]
    pub(crate) seconds: bool,
}

impl TableArgs {
    /// Returns how tables print on this output.
    pub(crate) fn style(&self) -> TableStyle {
        TableStyle { width: width(), seconds: self.seconds }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// The job log: a file in the Standard Workload Format, plain or gzipped, or - for standard input
    pub(crate) trace: PathBuf,

    /// The policy, such as easy or 'easy(backfill=shortest)'; `miserly policies` lists them
    #[arg(long, short, value_name = "POLICY")]
    pub(crate) policy: PolicySpec,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    /// Also measure the jobs group by group; repeatable. A category is a range of runtimes and of widths
    #[arg(long, value_name = "KIND", value_parser = grouping())]
    pub(crate) by: Vec<Grouping>,

    /// Write one row per simulated job: Batsim's columns to a .csv, the log with simulated fields to a .swf
    #[arg(long, value_name = "OUT")]
    pub(crate) jobs: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) table: TableArgs,

    #[command(flatten)]
    pub(crate) report: ReportFileArgs,

    /// Print one JSON document (docs/simulate.schema.json)
    #[arg(long)]
    pub(crate) json: bool,

    /// With --json: also the distributions of the measures, and the run over time
    #[arg(long, requires = "json")]
    pub(crate) details: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The job logs; without one, an embedded workload is generated
    #[arg(value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,

    /// A policy to compare; repeatable; without one, a telling set
    #[arg(long, short, value_name = "POLICY")]
    pub(crate) policy: Vec<PolicySpec>,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    #[command(flatten)]
    pub(crate) table: TableArgs,

    #[command(flatten)]
    pub(crate) report: ReportFileArgs,

    /// Also compare the jobs group by group; repeatable. A category is a range of runtimes and of widths
    #[arg(long, value_name = "KIND", value_parser = grouping())]
    pub(crate) by: Vec<Grouping>,

    /// Print one JSON document with the runs
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WaitOfArgs {
    /// The job log: a file in the Standard Workload Format, plain or gzipped, or - for standard input
    pub(crate) trace: PathBuf,

    /// The processors of the job
    #[arg(value_name = "SIZE", value_parser = procs())]
    pub(crate) size: Procs,

    /// The time limit of the job, such as 4h
    #[arg(value_name = "TIME", value_parser = job_time)]
    pub(crate) time: Span,

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

    /// Print JSON; times are in seconds
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The job log: a file in the Standard Workload Format, plain or gzipped, or - for standard input
    pub(crate) trace: PathBuf,

    /// The job's number: field 1
    #[arg(value_name = "JOB", value_parser = job_number)]
    pub(crate) job: i64,

    /// The policy, such as easy or 'easy(backfill=shortest)'
    #[arg(long, short, value_name = "POLICY")]
    pub(crate) policy: PolicySpec,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MatrixArgs {
    /// The job log: a file in the Standard Workload Format, plain or gzipped, or - for standard input
    pub(crate) trace: PathBuf,

    /// The instant, on the log's clock: seconds, or 90min, 12h, 7d, 2w; all that happens at it has happened
    #[arg(value_name = "TIME", value_parser = seconds)]
    pub(crate) time: i64,

    /// A policy that shares processors by turns, such as 'gang(packing=best-fit)'
    #[arg(long, short, value_name = "POLICY")]
    pub(crate) policy: PolicySpec,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PoliciesArgs {
    /// Show this policy with its parameters, or this order with its source
    pub(crate) name: Option<String>,

    /// Print JSON
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
    /// Make the runs of an experiment file that are not in its folder yet, on all cores, and show what came out
    Run(RunExperimentArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunExperimentArgs {
    /// The experiment, a TOML file (docs/experiments.md)
    pub(crate) file: PathBuf,
    /// The folder of the results; runs that are there are kept. Without it, FILE-results
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// The folder of the logs, in place of MISERLY_TRACES; the file's own folder comes after it
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: Option<PathBuf>,
    /// Print the tables, charts and claims as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// The paper; without it, lists those that there are
    pub(crate) paper: Option<String>,
    /// The folder of the results; runs that are there are kept. Without it, PAPER-results
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// The folder of the logs, in place of MISERLY_TRACES
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: Option<PathBuf>,
    /// Only this part of the paper
    #[arg(long, value_name = "PART")]
    pub(crate) only: Option<String>,
    /// Print the tables, charts and claims, or the list of papers, as JSON
    #[arg(long)]
    pub(crate) json: bool,
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
    /// The command, such as simulate or workload generate; without it, the program itself
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
    /// Tell what is in a log: jobs, load, sizes, runtimes, estimates, users, arrivals, what is missing
    Describe(DescribeArgs),
    /// Find every anomaly of a log, by kind, with line numbers
    Check(CheckArgs),
    /// Generate a log from a model
    Generate(GenerateArgs),
    /// Make a log of another format: Slurm's accounting, Batsim's workloads (docs/import.md)
    Import(ImportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DescribeArgs {
    /// The job logs; - is standard input
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) traces: Vec<PathBuf>,
    /// The machine's processors, in place of the log's MaxProcs or MaxNodes
    #[arg(long, value_name = "N", value_parser = procs())]
    pub(crate) procs: Option<Procs>,
    /// Which field is a job's size, where both are known
    #[arg(long, value_enum, default_value_t = ProcsFieldArg::Allocated)]
    pub(crate) procs_field: ProcsFieldArg,
    /// Tell apart the jobs of this estimate: seconds, or 15min, 2h; repeatable; without it, of the three commonest
    #[arg(long, value_name = "T", value_parser = unsigned_seconds)]
    pub(crate) estimate: Vec<u64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The job logs; - is standard input
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) traces: Vec<PathBuf>,
    /// The machine's processors, in place of the log's MaxProcs or MaxNodes
    #[arg(long, value_name = "N", value_parser = procs())]
    pub(crate) procs: Option<Procs>,
    /// Which field is a job's size, where both are known
    #[arg(long, value_enum, default_value_t = ProcsFieldArg::Allocated)]
    pub(crate) procs_field: ProcsFieldArg,
    /// How many runs of line numbers to show of each kind; JSON has all
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) lines: usize,
    /// Exit with 1 if anything is found
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// The model of the workload: feitelson96 (Feitelson 1996, section 3.5), sud or sud-feitelson96 (Zotkin et al. 2000,
    /// section 3), o2k (Chiang and Vernon 2001, section 3; it makes a --month, and takes no --jobs, --procs or --load)
    #[arg(long, value_name = "MODEL", default_value = "feitelson96")]
    pub(crate) model: String,
    /// How many jobs [default: 10000; sud: 18415]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<u64>,
    /// The machine's processors [default: 128; sud: 256]
    #[arg(long, value_name = "P", value_parser = procs())]
    pub(crate) procs: Option<Procs>,
    /// The offered load: the jobs' work over what the machine can do while they are submitted [default: 0.85; sud: 0.765]
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    pub(crate) load: Option<f64>,
    /// The seed: the same one gives the same bytes [default: 1]
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// The month of o2k, after seven days of warm-up: 1999-10 to 2000-03 [default: 1999-10]
    #[arg(long, value_name = "MONTH")]
    pub(crate) month: Option<Month>,
    /// Submit each repetition of a job only after the one before it has run
    #[arg(long)]
    pub(crate) repeat_after_end: bool,
    /// Set a parameter of feitelson96, such as size_order=1.2 or square_weight=1; repeatable. The log's header lists them
    #[arg(long, value_name = "NAME=VALUE", value_parser = parameter)]
    pub(crate) set: Vec<(String, String)>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Returns the parser of a grouping of jobs.
fn grouping() -> impl TypedValueParser<Value = Grouping> {
    PossibleValuesParser::new(Grouping::ALL.map(Grouping::as_str)).try_map(|word| word.parse::<Grouping>())
}

/// Parses a parameter of a model: its name and its value.
fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE, such as size_order=1.2")?;
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
    /// It is killed there
    Kill,
    /// Its estimate is taken to be its runtime, when the log is read
    Extend,
    /// It runs on, overdue
    Run,
}

impl RunArgs {
    /// Returns the scaling of the submit times.
    pub(crate) fn arrivals(&self) -> ArrivalScaling {
        match self.scale_load {
            _ if self.offline => ArrivalScaling::Offline,
            Some(factor) => ArrivalScaling::Scaled(factor),
            None => ArrivalScaling::Logged,
        }
    }
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
    /// One
    One,
    /// Any number, each processor with its part of the job's memory
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
    /// They do
    Shared,
    /// A job has its hosts to itself
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
    /// Terminations, submissions, timers, then one pass
    Batched,
    /// One event at a time, each with a pass, as pyss and its descendants do
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
    text.parse().map_err(|_| "a job is asked for by its number, field 1 of its line")
}

/// Parses the name of a page. Its ending is .html, so it cannot be a log.
fn page_name(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    let html = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("html"));
    if html { Ok(path) } else { Err("the name must end in .html") }
}

/// Parses a window: two times with two points between them.
fn window(text: &str) -> Result<[i64; 2], String> {
    let (from, to) = text.split_once("..").ok_or("write it as FROM..TO, such as 2d..3d")?;
    let time = |text: &str| seconds(text).map_err(|problem| problem.to_string());
    let (from, to) = (time(from)?, time(to)?);
    if from < to { Ok([from, to]) } else { Err("the window's end must be after its begin".into()) }
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
