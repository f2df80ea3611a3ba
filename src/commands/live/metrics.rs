//! `miserly metrics`: the metrics of the daemon, as `OpenMetrics` text.

use std::process::ExitCode;

use super::client;
use crate::args::DaemonArgs;
use crate::output::print;

pub(crate) fn run(args: &DaemonArgs) -> anyhow::Result<ExitCode> {
    print(&client(args)?.metrics()?)?;
    Ok(ExitCode::SUCCESS)
}
