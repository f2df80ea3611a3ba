//! The arguments of `miserly workload`.

use std::path::PathBuf;

use clap::{Args, Subcommand, value_parser};
use miserly_core::Procs;
use miserly_workload::o2k::Month;
use miserly_workload::{Factor, ProcsField};

use super::import::ImportArgs;
use super::read::ReadArgs;
use super::run::PROCS_FIELDS;
use super::values::{procs, unsigned_seconds, words};

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
    /// Makes a log of other weeks from the users of a log (Zakay and Feitelson 2013)
    Resample(ResampleArgs),
    /// Converts the accounting of a batch system or a Batsim workload to a log (docs/import.md)
    Import(ImportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DescribeArgs {
    /// The job logs, plain or gzipped; - is standard input
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) traces: Vec<PathBuf>,
    /// The processors of the machine [default: MaxProcs of the log, else MaxNodes]
    #[arg(long, value_name = "N", value_parser = procs(), allow_negative_numbers = true)]
    pub(crate) procs: Option<Procs>,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// The field with the width of a job, if the log has both
    #[arg(long, value_parser = words(&PROCS_FIELDS), default_value = "allocated")]
    pub(crate) procs_field: ProcsField,
    /// An estimate to describe separately: seconds, or 90min, 12h, 7d; repeatable [default: the three commonest]
    #[arg(long, value_name = "T", value_parser = unsigned_seconds)]
    pub(crate) estimate: Vec<u64>,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The job logs, plain or gzipped; - is standard input
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) traces: Vec<PathBuf>,
    /// The processors of the machine [default: MaxProcs of the log, else MaxNodes]
    #[arg(long, value_name = "N", value_parser = procs(), allow_negative_numbers = true)]
    pub(crate) procs: Option<Procs>,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// The field with the width of a job, if the log has both
    #[arg(long, value_parser = words(&PROCS_FIELDS), default_value = "allocated")]
    pub(crate) procs_field: ProcsField,
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
pub(crate) struct ResampleArgs {
    /// The job log, plain or gzipped; - is standard input
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// The length of the new log in weeks
    #[arg(long, value_name = "N", default_value_t = 52, value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) weeks: u32,
    /// The number of users, and so the load, as a factor
    #[arg(long, value_name = "F", default_value = "1", allow_negative_numbers = true)]
    pub(crate) users: Factor,
    /// The weeks from the first job of a long-term user to the last, at least
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) long_term: u32,
    /// The seed of the random numbers; a seed always gives the same bytes
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// The model: feitelson96 (Feitelson 1996, section 3.5), sud or sud-feitelson96 (Zotkin et al. 2000, section 3),
    /// lublin99 (Lublin and Feitelson 1999, with the draws of the archive's program), o2k (Chiang and Vernon 2001, section 3; takes --month, but not --jobs, --procs or --load)
    #[arg(long, value_name = "MODEL", default_value = "feitelson96")]
    pub(crate) model: String,
    /// The number of jobs [default: 10000; sud: 18415]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<u64>,
    /// The processors of the machine [default: 128; sud: 256]
    #[arg(long, value_name = "P", value_parser = procs(), allow_negative_numbers = true)]
    pub(crate) procs: Option<Procs>,
    /// The offered load: the work of the jobs over the capacity until the last submission [default: 0.85; sud: 0.765; lublin99: that of its arrivals]
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
    /// A parameter of feitelson96 or lublin99, such as size_order=1.2 or types=all; repeatable. The header of the log lists all
    #[arg(long, value_name = "NAME=VALUE", value_parser = parameter)]
    pub(crate) set: Vec<(String, String)>,
    /// The output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Parses a parameter of a model: its name and its value.
fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("no = found; write NAME=VALUE, such as size_order=1.2")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
