//! The options for reading a log that is converted first.

use clap::Args;
use miserly_import::TimeZone;

/// The options for reading a log of another form than the Standard Workload Format.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Options of accounting (docs/import.md)")]
pub(crate) struct ReadArgs {
    /// The time zone of the cluster, such as Europe/Berlin, for times without one and for the header
    #[arg(long, value_name = "ZONE", value_parser = time_zone)]
    pub(crate) time_zone: Option<TimeZone>,
}

fn time_zone(name: &str) -> Result<TimeZone, &'static str> {
    TimeZone::get(name).map_err(|_| "unknown time zone; write it as Europe/Berlin or UTC")
}
