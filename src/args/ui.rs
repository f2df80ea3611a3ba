//! The arguments of `miserly ui`.

use std::path::PathBuf;

use clap::Args;
use miserly_policies::PolicySpec;

use super::slurm::ClusterArgs;
use super::{DaemonArgs, RunArgs};

#[derive(Debug, Args)]
pub(crate) struct UiArgs {
    /// The port on 127.0.0.1 and ::1 [default: any free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,

    /// Lets nobody change jobs from the page
    #[arg(long)]
    pub(crate) read_only: bool,

    /// Admits requests of a reverse proxy that have the first line of this file in the header X-Miserly-Proxy
    #[arg(long, value_name = "FILE")]
    pub(crate) proxy_secret: Option<PathBuf>,

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
