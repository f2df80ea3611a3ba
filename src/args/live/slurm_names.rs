//! The arguments of `miserly slurm-names`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct SlurmNamesArgs {
    #[command(subcommand)]
    pub(crate) command: SlurmNamesCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SlurmNamesCommand {
    /// Makes links sbatch, squeue, scancel, sacct, srun, salloc, sinfo, scontrol and sstat in a folder
    Install(InstallNamesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InstallNamesArgs {
    /// The folder of the links, which users put into PATH
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,

    /// Makes the links also where PATH has the programs of Slurm, and replaces files of these names in the folder
    #[arg(long)]
    pub(crate) replace: bool,
}
