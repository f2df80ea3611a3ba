//! The command line of the daemon.

use std::path::PathBuf;

use clap::Args;

#[derive(Clone, Debug, Args)]
pub(crate) struct ServeArgs {
    /// The configuration; half of the machine's processors and memory, in one queue, where it is left out
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Only check a configuration, and show what would become of it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "recover"])]
    pub(crate) check: Option<PathBuf>,

    /// The folder of its state, in place of what the configuration says
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,

    /// Its socket, in place of what the configuration says
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,

    /// Restore a damaged state from what is readable and from the newest backup; the damaged files are kept, and losses listed
    #[arg(long)]
    pub(crate) recover: bool,

    /// With --check: print JSON
    #[arg(long, requires = "check")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The folder of the state of a daemon, which may be running; where it is left out, that of the daemon that MISERLY_SOCKET
    /// names, or else of this user's
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShimArgs {
    /// The folder of the attempt
    pub(crate) dir: PathBuf,
}
