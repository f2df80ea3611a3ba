//! The options for reading a log that is converted first.

use clap::Args;
use miserly_import::TimeZone;

/// The options for reading a log that is not as the Standard Workload Format has it.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Options of reading (docs/import.md)")]
pub(crate) struct ReadArgs {
    /// The time zone of the cluster, such as Europe/Berlin, for times without one and for the header
    #[arg(long, value_name = "ZONE", value_parser = time_zone)]
    pub(crate) time_zone: Option<TimeZone>,

    /// Takes the missing fields of a line in the Standard Workload Format as unknown; it needs the first five
    #[arg(long)]
    pub(crate) missing_fields: bool,
}

fn time_zone(name: &str) -> Result<TimeZone, &'static str> {
    TimeZone::get(name).map_err(|_| "unknown time zone; write it as Europe/Berlin or UTC")
}
