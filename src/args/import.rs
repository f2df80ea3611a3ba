//! The arguments of `miserly workload import`.

use std::path::PathBuf;

use clap::{Args, Subcommand, value_parser};
use miserly_core::Procs;
use miserly_import::{ImportOptions, SubmitAt, TimeZone};

use super::read::time_zone;
use super::values::{procs, words};

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    pub(crate) command: ImportCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Imports Slurm's accounting, as printed by sacct -P or sacct --json
    Slurm(SlurmArgs),
    /// Imports the accounting of PBS Pro, OpenPBS or Torque
    Pbs(SiteArgs),
    /// Imports the accounting of LSF: lsb.acct
    Lsf(SiteArgs),
    /// Imports the accounting of Grid Engine
    Sge(SiteArgs),
    /// Imports a Batsim workload, in JSON
    Batsim(BatsimArgs),
}

/// The output options of an import.
#[derive(Clone, Debug, Args)]
pub(crate) struct WrittenArgs {
    /// The output file; the report then goes to standard output [default: the log to standard output, the report to standard error]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Prints the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SlurmArgs {
    /// The output of sacct, plain or gzipped; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "command")]
    pub(crate) input: Option<PathBuf>,
    /// Prints the sacct command for the input, and exits
    #[arg(long, exclusive = true)]
    pub(crate) command: bool,
    #[command(flatten)]
    pub(crate) accounting: AccountingArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SiteArgs {
    /// The accounting, plain or gzipped; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) accounting: AccountingArgs,
}

/// The options of an import of accounting.
#[derive(Debug, Args)]
pub(crate) struct AccountingArgs {
    /// The processors of the machine, for the header [default: unknown]
    #[arg(long, value_name = "N", value_parser = procs())]
    pub(crate) procs: Option<Procs>,
    /// The nodes of the machine, for the header [default: unknown]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(crate) nodes: Option<u32>,
    /// The time zone of the cluster, such as Europe/Berlin, for times without an offset and for the header
    #[arg(long, value_name = "ZONE", value_parser = time_zone)]
    pub(crate) time_zone: Option<TimeZone>,
    /// The processors of a node, if the size of a job is in nodes only
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(crate) cpus_per_node: Option<u32>,
    /// The separator of the columns of sacct [default: that of its header]
    #[arg(long, value_name = "TEXT")]
    pub(crate) delimiter: Option<String>,
    /// The time that is the submission of a job
    #[arg(long, value_parser = words(&SUBMIT_AT), default_value = "submit")]
    pub(crate) submit_at: SubmitAt,
    /// Keeps the ids of jobs, users and groups [default: anonymous numbers]
    #[arg(long)]
    pub(crate) keep_ids: bool,
    /// Skips and counts malformed lines instead of stopping at the first
    #[arg(long)]
    pub(crate) lenient: bool,
    #[command(flatten)]
    pub(crate) written: WrittenArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BatsimArgs {
    /// The workload, plain or gzipped; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// The processors of the machine [default: nb_res of the workload]
    #[arg(long, value_name = "N", value_parser = procs())]
    pub(crate) procs: Option<Procs>,
    #[command(flatten)]
    pub(crate) written: WrittenArgs,
}

pub(super) const SUBMIT_AT: [(&str, SubmitAt, &str); 2] = [
    ("submit", SubmitAt::Submit, "The submission by the user"),
    ("eligible", SubmitAt::Eligible, "The end of dependencies, begin time and holds"),
];

impl AccountingArgs {
    pub(crate) fn options(&self) -> ImportOptions {
        ImportOptions {
            procs: self.procs,
            nodes: self.nodes,
            cpus_per_node: self.cpus_per_node,
            time_zone: self.time_zone.clone(),
            delimiter: self.delimiter.clone(),
            submit_at: self.submit_at,
            keep_ids: self.keep_ids,
            lenient: self.lenient,
        }
    }
}

impl BatsimArgs {
    pub(crate) fn options(&self) -> ImportOptions {
        ImportOptions { procs: self.procs, ..ImportOptions::default() }
    }
}
