//! The command line.

// The rustdoc comments here are the help texts. Backticks would be shown, and brackets are not
// links.
#![allow(clippy::doc_markdown, rustdoc::broken_intra_doc_links)]

mod daemon;

mod experiment;

mod export;

mod import;

mod live;

mod question;

mod reproduce;

mod run;

mod simulate;

mod slurm;

mod source;

mod tables;

mod ui;

mod values;

mod workload;

use clap::{Args, Parser, Subcommand};

use crate::colour::ColourArg;

pub(crate) use self::daemon::{
    BackupArgs, ReplayArgs, ServeArgs, ShadowArgs, ShadowCommand, ShadowReportArgs, ShimArgs,
};
pub(crate) use self::experiment::{
    ExperimentArgs, ExperimentCommand, On, OnArgs, ReportArgs, RunExperimentArgs,
};
pub(crate) use self::export::{ExportArgs, ExportFormat};
pub(crate) use self::import::{ImportArgs, ImportCommand, SlurmArgs, WrittenArgs};
pub(crate) use self::live::{
    AddArgs, AllocArgs, AskArgs, AttachArgs, CancelArgs, Column, DaemonArgs, DrainArgs, EventsArgs,
    ExtendArgs, HookArgs, HookEvent, JobList, JobsArgs, LogsArgs, ModifyArgs, QueueArgs, ReleaseArgs,
    RemoveArgs, ReservationArgs, ReservationCommand, RunJobArgs, ShowArgs, SignalArgs, SortKey, StateFilter,
    SubmitArgs, TakeBackArgs, TopArgs, UsageArgs, UsageBy,
};
pub(crate) use self::question::{ChangeArgs, ForecastArgs, WaitOfArgs, WhatIfArgs};
pub(crate) use self::reproduce::{KernelArgs, KernelName, ReproduceArgs};
pub(crate) use self::run::RunArgs;
pub(crate) use self::simulate::{CompareArgs, ExplainArgs, MatrixArgs, PoliciesArgs, SimulateArgs};
pub(crate) use self::slurm::{
    FutureArgs, PeriodArgs, SlurmAuditArgs, SlurmClusterArgs, SlurmCommand, SlurmDriveArgs,
    SlurmForecastArgs, SlurmHandBackArgs, SlurmLogArgs, SlurmQueueArgs, SlurmShadowArgs, SlurmStatusArgs,
    SlurmTwinArgs, SlurmWatchArgs,
};
pub(crate) use self::source::SourceArgs;
pub(crate) use self::tables::ReportFileArgs;
pub(crate) use self::ui::UiArgs;
pub(crate) use self::workload::{CheckArgs, DescribeArgs, GenerateArgs, WorkloadArgs, WorkloadCommand};

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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
