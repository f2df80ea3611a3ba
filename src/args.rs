//! The command line.

// The rustdoc comments here are the help texts. Backticks would be shown, and brackets are not
// links.
#![allow(clippy::doc_markdown, rustdoc::broken_intra_doc_links)]

mod bench;

#[cfg(feature = "client")]
mod cluster;

#[cfg(feature = "daemon")]
mod daemon;

mod experiment;

#[cfg(feature = "daemon")]
mod export;

mod import;

#[cfg(feature = "daemon")]
mod live;

mod question;

mod reproduce;

mod simulate;

#[cfg(feature = "slurm")]
mod slurm;

#[cfg(feature = "client")]
mod socket;

#[cfg(feature = "page")]
mod source;

mod tables;

#[cfg(feature = "page")]
mod ui;

mod values;

mod workload;

use clap::{Args, Parser, Subcommand};
use miserly_options::{read, run};

use crate::colour::ColourArg;

pub(crate) use self::bench::BenchArgs;
#[cfg(feature = "daemon")]
pub(crate) use self::daemon::{
    BackupArgs, ReplayArgs, ServeArgs, ShadowArgs, ShadowCommand, ShadowReportArgs,
};
#[cfg(feature = "slurm")]
pub(crate) use self::experiment::OnArgs;
pub(crate) use self::experiment::{ExperimentArgs, ExperimentCommand, On, ReportArgs, RunExperimentArgs};
#[cfg(feature = "daemon")]
pub(crate) use self::export::{ExportArgs, ExportFormat};
pub(crate) use self::import::{
    AccountingArgs, ConvertAnyArgs, ConvertArgs, ImportCommand, JobForm, SlurmArgs, WrittenArgs,
};
#[cfg(feature = "daemon")]
pub(crate) use self::live::{
    AddArgs, AllocArgs, AskArgs, AttachArgs, CancelArgs, Column, DaemonCommand, DrainArgs, EventsArgs,
    ExtendArgs, HOOK_EVENTS, HookArgs, JobList, JobsArgs, LogsArgs, ModifyArgs, QueueArgs, ReleaseArgs,
    RemoveArgs, ReservationArgs, ReservationCommand, ResizeArgs, RunJobArgs, ShowArgs, SignalArgs,
    SlurmNamesArgs, SlurmNamesCommand, SortKey, StateFilter, StopArgs, SubmitArgs, TakeBackArgs, UsageArgs,
};
pub(crate) use self::question::{ForecastArgs, WaitOfArgs, WhatIfArgs};
pub(crate) use self::read::{ReadArgs, RewriteArgs};
pub(crate) use self::reproduce::ReproduceArgs;
#[cfg(feature = "measured")]
pub(crate) use self::reproduce::{KernelArgs, KernelName};
pub(crate) use self::run::RunArgs;
pub(crate) use self::simulate::{CompareArgs, ExplainArgs, MatrixArgs, PoliciesArgs, SimulateArgs};
#[cfg(feature = "slurm")]
pub(crate) use self::slurm::{
    FutureArgs, NewJobArgs, PeriodArgs, SlurmAuditArgs, SlurmCheckArgs, SlurmClusterArgs, SlurmCommand,
    SlurmDriveArgs, SlurmForecastArgs, SlurmHandBackArgs, SlurmHolesArgs, SlurmLogArgs, SlurmQueueArgs,
    SlurmShadowArgs, SlurmStatusArgs, SlurmTwinArgs, SlurmWatchArgs,
};
#[cfg(feature = "client")]
pub(crate) use self::socket::DaemonArgs;
#[cfg(feature = "page")]
pub(crate) use self::source::SourceArgs;
pub(crate) use self::tables::{By, ReportFileArgs};
#[cfg(feature = "page")]
pub(crate) use self::ui::{TopArgs, UiArgs};
pub(crate) use self::workload::{
    CheckArgs, ColumnsArgs, DescribeArgs, ResampleArgs, SliceArgs, WorkloadArgs, WorkloadCommand,
};

impl Command {
    /// Returns whether it handles signals itself.
    pub(crate) fn handles_signals(&self) -> bool {
        match self {
            #[cfg(feature = "daemon")]
            Command::OfDaemon(command) => command.handles_signals(),
            // A driver ends after its step.
            #[cfg(feature = "slurm")]
            Command::Slurm(args) => matches!(args.command, SlurmCommand::Drive(_)),
            // It is a job, which a signal ends.
            #[cfg(feature = "measured")]
            Command::Kernel(_) => true,
            _ => false,
        }
    }

    /// Returns whether it is a request to a daemon, if it has JSON output.
    pub(crate) fn asks_daemon(&self) -> bool {
        match self {
            Command::WaitOf(args) => args.daemon.is_some(),
            #[cfg(feature = "daemon")]
            Command::OfDaemon(command) => command.asks(),
            #[cfg(feature = "page")]
            Command::Top(_) => true,
            _ => false,
        }
    }
}

/// A scheduler for parallel batch jobs: simulates job logs under many policies, and runs jobs on this machine
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, max_term_width = 100, disable_help_subcommand = true)]
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
    /// Scores a policy on made windows against another one, for programs that search for policies
    Bench(BenchArgs),
    /// Repeats the experiments of a paper and prints its tables with both values and their difference
    Reproduce(ReproduceArgs),
    /// Writes the page of an experiment's results
    Report(ReportArgs),
    /// A command of the daemon
    #[cfg(feature = "daemon")]
    #[command(flatten)]
    OfDaemon(DaemonCommand),
    /// Shows pools, a chart and jobs on the terminal, until a key ends it
    ///
    /// The key ? lists the keys. Requests such as cancel tell their effect first, and wait for a confirmation.
    #[cfg(feature = "page")]
    Top(Box<TopArgs>),
    /// Serves a live page: past, present and promised future in one picture
    #[cfg(feature = "page")]
    Ui(Box<UiArgs>),
    /// Reads a Slurm cluster, forecasts its starts, and schedules it by a policy
    #[cfg(feature = "slurm")]
    Slurm(SlurmClusterArgs),
    /// Runs a program that miserly reproduce miser-1999 measures
    #[cfg(feature = "measured")]
    #[command(hide = true)]
    Kernel(KernelArgs),
    /// Prints the completion script of a shell
    Completions(CompletionsArgs),
    /// Prints the manual page of the program or of a command
    Man(ManArgs),
    /// Prints the help of the program or of a command
    Help(HelpArgs),
}

#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// Lists all commands
    #[arg(long, conflicts_with = "commands")]
    pub(crate) all: bool,

    /// The command, such as simulate or workload generate [default: the program]
    #[arg(value_name = "COMMAND")]
    pub(crate) commands: Vec<String>,
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
