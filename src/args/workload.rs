//! The arguments of `miserly workload`.

use std::path::PathBuf;

use clap::{Args, Subcommand, value_parser};
use miserly_core::Procs;
use miserly_options::ModelArgs;
use miserly_workload::slice::SliceOptions;
use miserly_workload::{Factor, ProcsField};

use super::import::ConvertArgs;
use super::read::{ConversionArgs, ReadArgs, RewriteArgs};
use super::run::PROCS_FIELDS;
use super::values::{procs, seconds, unsigned_seconds, words};

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
    /// Converts and filters a log, the accounting of a batch system or a Batsim workload (docs/import.md)
    #[command(visible_alias = "import")]
    Convert(ConvertArgs),
    /// Lists the windows of a log by load, and writes one that begins with the jobs in the system
    Slice(SliceArgs),
    /// Proposes a column map for a job table, or shows the jobs that a map gives with --columns or --preset (docs/import.md)
    Columns(ColumnsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ColumnsArgs {
    /// The table: CSV, JSON or Parquet, plain or compressed; of a folder or a pattern in quotes, the first file
    #[arg(value_name = "FILE", required_unless_present_any = ["presets", "map"])]
    pub(crate) input: Option<PathBuf>,
    /// Lists the presets
    #[arg(long, conflicts_with_all = ["input", "map"])]
    pub(crate) presets: bool,
    /// Prints the column map of a preset, to be changed and read with --columns
    #[arg(long, value_name = "PRESET", exclusive = true)]
    pub(crate) map: Option<String>,
    /// The output file for the proposed map; - is standard output [default: standard output]
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["json", "columns", "preset"])]
    pub(crate) output: Option<PathBuf>,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) conversion: ConversionArgs,
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
    /// The output file; - is standard output [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SliceArgs {
    /// The job log or the accounting of a cluster, plain or gzipped; - is standard input
    pub(crate) trace: PathBuf,
    /// The length of a window in weeks
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..), required_unless_present = "days")]
    weeks: Option<u16>,
    /// The length of a window in days
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..), conflicts_with = "weeks")]
    days: Option<u16>,
    /// The number of windows, at equal distances over the log [default: windows follow each other]
    #[arg(long, value_name = "K", value_parser = value_parser!(u32).range(1..=100_000))]
    pub(crate) count: Option<u32>,
    /// Lists the windows with an offered load in a range, such as 0.7..0.9; --output writes the nearest to its middle
    #[arg(long, value_name = "LOW..HIGH", value_parser = load_range)]
    pub(crate) load: Option<[f64; 2]>,
    /// Chooses a window by its number
    #[arg(long, value_name = "N", conflicts_with = "load")]
    pub(crate) window: Option<usize>,
    /// Begins the written log D before the window: seconds, or 90min, 12h, 7d; at least 2 s, unless it is cold
    #[arg(long, value_name = "D", value_parser = seconds, default_value = "0")]
    pub(crate) warmup: i64,
    /// Begins the written log on an idle machine, not with the jobs in the system by the recorded starts
    #[arg(long)]
    pub(crate) cold: bool,
    /// The processors of the machine [default: MaxProcs of the log, else MaxNodes]
    #[arg(long, value_name = "N", value_parser = procs(), allow_negative_numbers = true)]
    pub(crate) procs: Option<Procs>,
    /// The field with the width of a job, if the log has both
    #[arg(long, value_parser = words(&PROCS_FIELDS), default_value = "allocated")]
    pub(crate) procs_field: ProcsField,
    /// The output file for one window, as a log; - is standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Prints JSON; times are in seconds of the log
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) rewrite: RewriteArgs,
}

impl SliceArgs {
    /// Returns the options of the windows on a machine of this size.
    pub(crate) fn options(&self, procs: Procs) -> SliceOptions {
        let SliceArgs { procs_field, count, warmup, cold, .. } = *self;
        let lenient = self.rewrite.lenient;
        let days = self.days.or_else(|| self.weeks.map(|weeks| weeks.saturating_mul(7)));
        let length = i64::from(days.unwrap_or(7)) * 86_400;
        SliceOptions { procs, procs_field, length, count, warmup, cold, lenient }
    }
}

/// Parses a range of loads.
fn load_range(text: &str) -> Result<[f64; 2], String> {
    let (low, high) = text.split_once("..").ok_or("no .. found; write LOW..HIGH, such as 0.7..0.9")?;
    let load = |text: &str| {
        let load = text.trim().parse::<f64>().ok().filter(|load| load.is_finite() && *load >= 0.0);
        load.ok_or_else(|| format!("{text:?} is no load; write 0 or more, such as 0.85"))
    };
    let (low, high) = (load(low)?, load(high)?);
    if low <= high { Ok([low, high]) } else { Err("the range ends below its begin".into()) }
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The output file; - is standard output [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
