//! The arguments that choose a Slurm cluster.

use std::path::PathBuf;

use clap::Args;

/// The cluster of a command.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClusterArgs {
    /// The configuration of the cluster [default: that of Slurm's commands: SLURM_CONF, or the built-in place]
    #[arg(long, value_name = "FILE")]
    pub(crate) slurm_conf: Option<PathBuf>,
}

#[cfg(feature = "slurm")]
impl ClusterArgs {
    pub(crate) fn slurm(&self) -> miserly_slurm::Slurm {
        miserly_slurm::Slurm { configuration: self.slurm_conf.clone() }
    }
}
