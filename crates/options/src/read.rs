//! The options for reading a log that is converted first.

use std::sync::Arc;

use clap::{Args, value_parser};
use miserly_import::{ColumnMap, ImportOptions, SubmitAt, TimeZone, find_preset, find_time_zone};

use crate::values::words;

const HEADING: &str = "Options of reading (docs/import.md)";

/// The options for reading a log that is not as the Standard Workload Format has it.
#[derive(Clone, Debug, Default, Args)]
pub struct ReadArgs {
    /// The options of its conversion
    #[command(flatten)]
    pub conversion: ConversionArgs,

    /// Takes the missing fields of a line in the Standard Workload Format as unknown; it needs the first five
    #[arg(long, help_heading = HEADING)]
    pub missing_fields: bool,
}

/// The options for reading a log that is written again.
#[derive(Clone, Debug, Default, Args)]
pub struct RewriteArgs {
    /// Keeps the ids and names of jobs, users and groups of accounting and of tables [default: anonymous numbers]
    #[arg(long)]
    pub keep_ids: bool,
    /// Skips and counts malformed lines instead of stopping at the first
    #[arg(long)]
    pub lenient: bool,
    /// The options of reading the log
    #[command(flatten)]
    pub read: ReadArgs,
}

/// The options of a conversion of accounting.
#[derive(Clone, Debug, Default, Args)]
pub struct ConversionArgs {
    /// The time zone of the cluster, such as Europe/Berlin or +05:30, for times without one and for the header
    #[arg(long, help_heading = HEADING, value_name = "ZONE", value_parser = find_time_zone, allow_hyphen_values = true)]
    pub time_zone: Option<TimeZone>,

    /// The processors of a node, for accounting that has the size of a job in nodes only
    #[arg(long, help_heading = HEADING, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub cpus_per_node: Option<u32>,

    /// The separator of the columns of sacct [default: that of its header]
    #[arg(long, help_heading = HEADING, value_name = "TEXT")]
    pub delimiter: Option<String>,

    /// What the columns of a job table mean, by the name of a public data set (miserly workload columns --presets)
    #[arg(long, help_heading = HEADING, value_name = "NAME", value_parser = preset, conflicts_with = "columns")]
    pub preset: Option<Arc<ColumnMap>>,

    /// What the columns of a job table mean, as a file (miserly workload columns FILE proposes one)
    #[arg(long, help_heading = HEADING, value_name = "FILE", value_parser = column_map)]
    pub columns: Option<Arc<ColumnMap>>,

    /// The time of accounting that is the submission of a job
    #[arg(long, help_heading = HEADING, value_parser = words(&SUBMIT_AT), default_value = "submit")]
    pub submit_at: SubmitAt,
}

impl ConversionArgs {
    /// Returns the options of a conversion.
    pub fn options(&self) -> ImportOptions {
        ImportOptions {
            time_zone: self.time_zone.clone(),
            cpus_per_node: self.cpus_per_node,
            delimiter: self.delimiter.clone(),
            submit_at: self.submit_at,
            columns: self.columns(),
            ..ImportOptions::default()
        }
    }

    /// Returns the meaning of the columns, if the log is a table.
    pub fn columns(&self) -> Option<Arc<ColumnMap>> {
        self.preset.clone().or_else(|| self.columns.clone())
    }
}

fn preset(name: &str) -> Result<Arc<ColumnMap>, String> {
    find_preset(name)?.map().map(Arc::new)
}

/// Reads a column map. Its problems are found with those of its table.
fn column_map(name: &str) -> Result<Arc<ColumnMap>, String> {
    let text = std::fs::read_to_string(name).map_err(|error| format!("cannot read {name}: {error}"))?;
    ColumnMap::draft(name, &text).map(Arc::new).map_err(|error| error.to_string())
}

/// The words of the time that is the submission of a job.
pub const SUBMIT_AT: [(&str, SubmitAt, &str); 2] = [
    ("submit", SubmitAt::Submit, "The submission by the user"),
    ("eligible", SubmitAt::Eligible, "The end of dependencies, begin time and holds"),
];
