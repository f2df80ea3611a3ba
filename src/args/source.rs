//! The arguments that choose the source of a page or a terminal.

use std::path::PathBuf;

use clap::Args;
use miserly_policies::PolicySpec;

use super::cluster::ClusterArgs;
use super::{DaemonArgs, RunArgs};

/// A daemon, a simulated run, the state of a daemon, or a Slurm cluster.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,

    /// Shows a simulated run of this job log in place of a daemon
    #[arg(long = "run", value_name = "LOG", conflicts_with = "socket")]
    pub(crate) run_log: Option<PathBuf>,

    /// A policy of the run, such as easy; repeatable, one chart for each
    #[arg(long, short, value_name = "POLICY")]
    pub(crate) policy: Vec<PolicySpec>,

    /// Shows the finished jobs in this state folder of a daemon, which need not run
    #[arg(long, value_name = "STATE", conflicts_with_all = ["socket", "run_log", "policy", "slurm"])]
    pub(crate) journal: Option<PathBuf>,

    /// Shows the Slurm cluster of this machine in place of a daemon; nothing can be changed
    #[arg(long, conflicts_with_all = ["socket", "run_log", "policy"])]
    pub(crate) slurm: bool,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    #[command(flatten)]
    pub(crate) run: RunArgs,
}
