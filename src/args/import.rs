//! The arguments of `miserly workload convert`.

use std::path::PathBuf;

use clap::{Args, Subcommand, value_parser};
use miserly_core::Procs;
use miserly_import::ImportOptions;

use super::read::{ConversionArgs, RewriteArgs};
use super::run::FilterArgs;
use super::values::{procs, words};

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
    /// Imports a job table: CSV, JSON, Parquet or text, by --preset or --columns
    Table(SiteArgs),
    /// Imports a Batsim workload, in JSON
    Batsim(BatsimArgs),
}

/// The arguments of a conversion of any log, or of one of a given form.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ConvertArgs {
    #[command(subcommand)]
    pub(crate) form: Option<ImportCommand>,
    #[command(flatten)]
    pub(crate) any: ConvertAnyArgs,
}

/// The arguments of a conversion of any log.
#[derive(Debug, Args)]
pub(crate) struct ConvertAnyArgs {
    /// The log or the accounting of a cluster, of any form that is recognised, plain or gzipped; - is standard input
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// The processors of the machine, for the header of another form [default: unknown]
    #[arg(long, value_name = "N", value_parser = procs())]
    pub(crate) procs: Option<Procs>,
    /// The form of the output: swf or csv, a table with named columns [default: csv for a .csv, else swf]
    #[arg(long, value_name = "FORM", value_parser = words(&FORMS))]
    pub(crate) format: Option<JobForm>,
    /// The output file; - is standard output [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) rewrite: RewriteArgs,
}

/// A form of the jobs of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobForm {
    Swf,
    Csv,
}

const FORMS: [(&str, JobForm, &str); 2] = [
    ("swf", JobForm::Swf, "The Standard Workload Format, with extra fields (docs/formats.md)"),
    ("csv", JobForm::Csv, "A table with named columns, and times also in seconds of the Unix epoch"),
];

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
    #[command(flatten)]
    pub(crate) conversion: ConversionArgs,
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

impl AccountingArgs {
    pub(crate) fn options(&self) -> ImportOptions {
        let AccountingArgs { procs, nodes, keep_ids, lenient, .. } = *self;
        ImportOptions { procs, nodes, keep_ids, lenient, ..self.conversion.options() }
    }
}

impl BatsimArgs {
    pub(crate) fn options(&self) -> ImportOptions {
        ImportOptions { procs: self.procs, ..ImportOptions::default() }
    }
}
