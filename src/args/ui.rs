//! The arguments of `miserly ui`.

use std::path::PathBuf;

use clap::Args;

use super::source::SourceArgs;

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Each is a flag of its own.
pub(crate) struct TopArgs {
    /// Prints one frame as text and ends, as it does where the output is no terminal
    #[arg(long)]
    pub(crate) once: bool,

    /// Draws with ASCII characters, as it does in a locale without UTF-8
    #[arg(long)]
    pub(crate) ascii: bool,

    /// Prints the state as JSON and ends
    #[arg(long, conflicts_with_all = ["once", "ascii", "processors"])]
    pub(crate) json: bool,

    /// Begins with the map of processors, hosts and memory, which the key p shows
    #[arg(long)]
    pub(crate) processors: bool,

    /// Begins at an earlier instant, such as 2026-03-01T08:00; of a log without a date, "day 3 08:00"
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    pub(crate) at: Option<String>,

    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

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
    pub(crate) source: SourceArgs,
}
