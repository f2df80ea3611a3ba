//! The arguments that choose a daemon.

use std::path::PathBuf;

use clap::Args;

/// The daemon of a command.
#[derive(Clone, Debug, Args)]
pub(crate) struct DaemonArgs {
    /// The socket of the daemon [default: MISERLY_SOCKET, else $XDG_RUNTIME_DIR/miserly/socket, else /run/miserly/socket]
    #[arg(long, value_name = "SOCKET")]
    pub(crate) socket: Option<PathBuf>,
}
