//! The command line of the daemon.

use std::path::PathBuf;

use clap::Args;

#[derive(Clone, Debug, Args)]
pub(crate) struct ServeArgs {
    /// The configuration file [default: one queue with half of the machine's processors and memory]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Checks a configuration file, prints its settings, and exits
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "recover"])]
    pub(crate) check: Option<PathBuf>,

    /// The folder of the daemon's state [default: from the configuration]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,

    /// The socket of the daemon [default: from the configuration]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,

    /// Restores a damaged state from its readable parts and the newest backup, and lists the losses; damaged files are kept
    #[arg(long)]
    pub(crate) recover: bool,

    /// Prints the settings as JSON
    #[arg(long, requires = "check")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The folder of a daemon's state, also while it runs [default: that of the daemon of MISERLY_SOCKET, else of this user]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShimArgs {
    /// The folder of the attempt
    pub(crate) dir: PathBuf,
}
