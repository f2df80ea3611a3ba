//! The arguments of `miserly reproduce`, and of the programs that it measures.

use std::path::PathBuf;

use clap::{Args, ValueEnum, value_parser};

#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// The paper, such as zotkin-2000 [default: lists the papers]
    pub(crate) paper: Option<String>,
    /// The folder of the results; simulated runs found there are kept [default: PAPER-results]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// The folder of the logs [default: MISERLY_TRACES]
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: Option<PathBuf>,
    /// Limits the runs to one part of the paper
    #[arg(long, value_name = "PART")]
    pub(crate) only: Option<String>,
    /// Prints the tables, charts and claims, or the list of papers, as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) measured: MeasuredArgs,
}

/// The options of miser-1999, whose runs are processes of this machine.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of miser-1999, which is measured on this machine")]
pub(crate) struct MeasuredArgs {
    /// Makes short runs that check the mechanisms; their times mean nothing
    #[arg(long)]
    pub(crate) quick: bool,
    /// The factor of the work of each run; at 1 it takes about 0.6 s on an idle processor [default: 1]
    #[arg(long, value_name = "F", value_parser = factor)]
    pub(crate) scale: Option<f64>,
    /// The repetitions of each point [default: 3]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) repeats: Option<u32>,
    /// The threads of a kernel, and the processors of the pool [default: half of the processors]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=65_535))]
    pub(crate) threads: Option<u32>,
    /// The seed of the order of the runs [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// A folder of cgroup v2 for the control groups of the jobs [default: none]
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Option<PathBuf>,
}

impl MeasuredArgs {
    /// Returns the first option that is set.
    pub(crate) fn first(&self) -> Option<&'static str> {
        let MeasuredArgs { quick, scale, repeats, threads, seed, cgroup } = self;
        let all = [
            ("--quick", *quick),
            ("--scale", scale.is_some()),
            ("--repeats", repeats.is_some()),
            ("--threads", threads.is_some()),
            ("--seed", seed.is_some()),
            ("--cgroup", cgroup.is_some()),
        ];
        all.into_iter().find_map(|(name, set)| set.then_some(name))
    }
}

/// Parses the factor of the work.
fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| (0.001..=1000.0).contains(factor));
    factor.ok_or_else(|| "the factor must be a number from 0.001 to 1000".into())
}

/// A program whose run `miserly reproduce miser-1999` measures.
#[derive(Debug, Args)]
pub(crate) struct KernelArgs {
    /// The program
    pub(crate) name: KernelName,
    /// The rounds of a kernel
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// The threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=65_535))]
    pub(crate) threads: u32,
    /// The processors to run on
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cpus: Vec<u32>,
    /// The nice value of the process and of its session
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) nice: Option<i32>,
    /// The parent, with which it ends; it then has a session of its own
    #[arg(long, value_name = "PID")]
    pub(crate) parent: Option<i32>,
    /// The folder of a guard
    #[arg(long, value_name = "FOLDER", required_if_eq("name", "guard"))]
    pub(crate) folder: Option<PathBuf>,
    /// The control group of a guard
    #[arg(long, value_name = "FOLDER")]
    pub(crate) group: Option<PathBuf>,
}

/// The name of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KernelName {
    /// Pairs of normal deviates, without synchronisation
    Ep,
    /// Block-tridiagonal solves, with coarse synchronisation
    Bt,
    /// Conjugate gradients, with fine synchronisation
    Cg,
    /// Prints the time of its start
    Stamp,
    /// Uses processor time until it is killed
    Burn,
    /// Holds as many megabytes as rounds until it is killed
    Hold,
    /// Ends the daemon and the jobs of a measurement that was killed
    Guard,
}
