//! The arguments of `miserly ui`.

use std::path::PathBuf;

use clap::Args;

use super::source::SourceArgs;

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
