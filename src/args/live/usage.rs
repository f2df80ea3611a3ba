//! The arguments of `miserly usage`.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use jiff::civil::Date;
use miserly_view::UsageBy;

use super::DaemonArgs;
use crate::args::values::{past, words};

#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    /// The parts into which the jobs are divided
    #[arg(long, value_name = "WHAT", value_parser = words(&BY), default_value = "user")]
    pub(crate) by: UsageBy,

    /// Counts the jobs that ended in this month, such as 2026-11
    #[arg(long, value_name = "MONTH", value_parser = month, conflicts_with_all = ["since", "until"])]
    pub(crate) month: Option<Date>,

    /// Counts the jobs that ended from then on: 7d (ago), 12h, or 2026-03-01
    #[arg(long, value_name = "WHEN", value_parser = past)]
    pub(crate) since: Option<Timestamp>,

    /// Counts the jobs that ended before then, in the notation of --since
    #[arg(long, value_name = "WHEN", value_parser = past)]
    pub(crate) until: Option<Timestamp>,

    /// Limits the jobs to yours
    #[arg(long, short)]
    pub(crate) mine: bool,

    /// Limits the jobs to those of a queue
    #[arg(long, value_name = "QUEUE")]
    pub(crate) queue: Option<String>,

    /// Prints CSV
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,

    /// Writes a page to a file: the parts, the days, and the largest jobs
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

const BY: [(&str, UsageBy, &str); 5] = [
    ("user", UsageBy::User, "By user"),
    ("queue", UsageBy::Queue, "By queue"),
    ("name", UsageBy::Name, "By the name of the job"),
    ("day", UsageBy::Day, "By the day of the end"),
    ("month", UsageBy::Month, "By the month of the end"),
];

/// Parses a month. Returns its first day.
fn month(text: &str) -> Result<Date, String> {
    format!("{text}-01").parse().map_err(|_| "write a month, such as 2026-11".to_owned())
}
