//! The arguments of `miserly workload import`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, value_parser};
use miserly_core::Procs;
use miserly_import::{BatsimOptions, SlurmOptions, SubmitAt, TimeZone};

use super::procs;

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    pub(crate) command: ImportCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Slurm's accounting, as sacct prints it
    Slurm(SlurmArgs),
    /// A workload of Batsim, in JSON
    Batsim(BatsimArgs),
}

/// The output options of an import.
#[derive(Clone, Debug, Args)]
pub(crate) struct WrittenArgs {
    /// Write the log to this file, and the report to standard output instead of standard error
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SlurmArgs {
    /// What sacct -P printed, plain or gzipped, or - for standard input
    #[arg(value_name = "FILE", required_unless_present = "command")]
    pub(crate) input: Option<PathBuf>,
    /// Print the sacct command whose output is read, and nothing else
    #[arg(long, exclusive = true)]
    pub(crate) command: bool,
    /// The machine's processors, for the header; the accounting does not tell them
    #[arg(long, value_name = "N", value_parser = procs())]
    pub(crate) procs: Option<Procs>,
    /// The machine's nodes, for the header
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(crate) nodes: Option<u32>,
    /// The cluster's time zone, such as Europe/Berlin: for the header, and for times that are no seconds
    #[arg(long, value_name = "ZONE", value_parser = time_zone)]
    pub(crate) time_zone: Option<TimeZone>,
    /// Which time counts as a job's submission
    #[arg(long, value_enum, default_value_t = SubmitAtArg::Submit)]
    pub(crate) submit_at: SubmitAtArg,
    /// Keep the ids of jobs, users and groups; otherwise they are numbered, so that nobody can be told from the log
    #[arg(long)]
    pub(crate) keep_ids: bool,
    /// Skip and count lines that cannot be jobs instead of stopping at the first
    #[arg(long)]
    pub(crate) lenient: bool,
    #[command(flatten)]
    pub(crate) written: WrittenArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BatsimArgs {
    /// The workload, plain or gzipped, or - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// The machine's processors, in place of the workload's nb_res
    #[arg(long, value_name = "N", value_parser = procs())]
    pub(crate) procs: Option<Procs>,
    #[command(flatten)]
    pub(crate) written: WrittenArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SubmitAtArg {
    /// When the user submitted it
    Submit,
    /// When its dependencies, begin time and holds were over
    Eligible,
}

impl SlurmArgs {
    pub(crate) fn options(&self) -> SlurmOptions {
        SlurmOptions {
            procs: self.procs,
            nodes: self.nodes,
            time_zone: self.time_zone.clone(),
            submit_at: match self.submit_at {
                SubmitAtArg::Submit => SubmitAt::Submit,
                SubmitAtArg::Eligible => SubmitAt::Eligible,
            },
            keep_ids: self.keep_ids,
            lenient: self.lenient,
        }
    }
}

impl BatsimArgs {
    pub(crate) fn options(&self) -> BatsimOptions {
        BatsimOptions { procs: self.procs }
    }
}

fn time_zone(name: &str) -> Result<TimeZone, &'static str> {
    TimeZone::get(name).map_err(|_| "no such time zone; they are called like Europe/Berlin or UTC")
}
