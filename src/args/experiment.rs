//! The arguments of `miserly experiment`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use miserly_experiments::experiment::Part;

use super::tables::FormatArgs;

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
    #[arg(long, value_name = "K/N", value_parser = part, conflicts_with_all = ["on", "json", "bars"])]
    pub(crate) part: Option<Part>,
    #[command(flatten)]
    pub(crate) on: OnArgs,
    /// Prints the tables, charts and claims as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    #[command(flatten)]
    pub(crate) drawn: DrawnArgs,
}

/// What a page draws besides the charts of the experiment.
#[derive(Debug, Args)]
pub(crate) struct DrawnArgs {
    /// Draws each table of figures as grouped bars too: a group for each row, a bar for each column, with its interval
    #[arg(long)]
    pub(crate) bars: bool,
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

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The folder of an experiment's results
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) drawn: DrawnArgs,
}

fn part(text: &str) -> Result<Part, String> {
    let numbers =
        text.split_once('/').and_then(|(number, count)| Some((number.parse().ok()?, count.parse().ok()?)));
    let part = numbers.and_then(|(number, count)| Part::new(number, count));
    part.ok_or_else(|| "K/N, with K from 1 to N".to_owned())
}
