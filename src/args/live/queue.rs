//! The arguments of `miserly queue`.

use clap::{Args, ValueEnum, value_parser};
use jiff::Timestamp;
use miserly_api::model::StateName;
use miserly_api::submit::length_of_time;

use super::{DaemonArgs, job};
use crate::args::values::past;

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Each is a flag of its own.
pub(crate) struct QueueArgs {
    /// Includes finished jobs
    #[arg(long, short)]
    pub(crate) all: bool,

    /// Limits the list to your jobs
    #[arg(long, short, visible_alias = "me", help_heading = FILTERS)]
    pub(crate) mine: bool,

    /// Limits the list to the jobs of a user, by name or number
    #[arg(long, short, value_name = "USER", conflicts_with = "mine", help_heading = FILTERS)]
    pub(crate) user: Option<String>,

    /// Limits the list to a queue
    #[arg(long, visible_short_alias = 'p', visible_alias = "partition", value_name = "QUEUE", help_heading = FILTERS)]
    pub(crate) queue: Option<String>,

    /// Limits the list to an array
    #[arg(long, value_name = "JOB", value_parser = job(), help_heading = FILTERS)]
    pub(crate) array: Option<i64>,

    /// Limits the list to states, separated by commas; a state of finished jobs includes these
    #[arg(
        long,
        short,
        visible_short_alias = 't',
        visible_alias = "states",
        value_name = "STATE",
        value_enum,
        ignore_case = true,
        value_delimiter = ',',
        help_heading = FILTERS
    )]
    pub(crate) state: Vec<StateFilter>,

    /// Limits the list to jobs with this name, in which * is any text and ? any character
    #[arg(long, short, value_name = "NAME", help_heading = FILTERS)]
    pub(crate) name: Option<String>,

    /// Limits the list to jobs with a promise that is at risk, or was late or lost; includes finished jobs
    #[arg(long, help_heading = FILTERS)]
    pub(crate) missed: bool,

    /// Limits the list to jobs that had not ended then: 2h (ago), 08:00 (the last one), or 2026-03-01T08:00; includes finished jobs
    #[arg(long, value_name = "WHEN", value_parser = past, help_heading = FILTERS)]
    pub(crate) since: Option<Timestamp>,

    /// Limits the list to jobs that were submitted by then, in the notation of --since
    #[arg(long, value_name = "WHEN", value_parser = past, help_heading = FILTERS)]
    pub(crate) until: Option<Timestamp>,

    /// Limits the list to N jobs, at most 10000; the oldest finished jobs are left out first
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=10_000), help_heading = FILTERS)]
    pub(crate) limit: Option<u32>,

    /// Lists the jobs with numbers above JOB, lowest first; with --limit, the next page
    #[arg(long, value_name = "JOB", value_parser = value_parser!(i64).range(0..), help_heading = FILTERS)]
    pub(crate) after: Option<i64>,

    /// Lists each job of an array; without it, those that wait or have ended alike are one row such as 1[3-200]
    #[arg(long, conflicts_with = "json")]
    pub(crate) each: bool,

    /// The columns, separated by commas
    #[arg(long, short, value_name = "COLUMN", value_enum, value_delimiter = ',', conflicts_with = "json")]
    pub(crate) columns: Vec<Column>,

    /// Sorts by columns, separated by commas; a column with - before it is sorted from high to low
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) sort: Vec<SortKey>,

    /// Prints instants with date and seconds
    #[arg(long, conflicts_with = "json")]
    pub(crate) exact: bool,

    /// Adds the commands, the paths and the usage of your own jobs to the JSON
    #[arg(long, requires = "json")]
    pub(crate) details: bool,

    /// Refreshes the list at this period, in seconds or with a unit [default: 2s]
    #[arg(
        long,
        short,
        value_name = "PERIOD",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2s",
        value_parser = length_of_time,
        conflicts_with = "json"
    )]
    pub(crate) watch: Option<u64>,

    /// Lists the jobs of the Slurm cluster in place of a daemon's, with the promises of its driver, as `slurm queue` does
    #[arg(
        long,
        conflicts_with_all = [
            "all", "array", "state", "missed", "since", "until", "limit", "after", "each", "columns", "sort", "exact",
            "details", "socket"
        ]
    )]
    pub(crate) slurm: bool,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

const FILTERS: &str = "Filters";

/// A column of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Column {
    /// The number, with the index in the array
    Job,
    /// The name
    Name,
    /// The user
    User,
    /// The queue
    Queue,
    /// The requested processors
    Cpus,
    /// The requested memory
    Memory,
    /// The requested GPUs
    Gpus,
    /// The time limit
    Time,
    /// The state
    State,
    /// The start: actual, promised (by) or planned
    Start,
    /// The likely start
    Likely,
    /// The end: actual, or the latest one (by)
    End,
    /// The submission
    Submitted,
    /// The wait until the start, so far or in all
    Wait,
    /// The time since the start, or in which it ran
    Ran,
    /// The number of the array
    Array,
    /// How often its command was begun
    Runs,
}

/// A column by which jobs are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SortKey {
    pub(crate) column: Column,
    /// From high to low.
    pub(crate) descends: bool,
}

impl std::str::FromStr for SortKey {
    type Err = String;

    fn from_str(text: &str) -> Result<SortKey, String> {
        let (descends, name) = match text.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, text),
        };
        let column = Column::from_str(name, true).map_err(|_| {
            let names: Vec<String> = Column::value_variants()
                .iter()
                .filter_map(|column| Some(column.to_possible_value()?.get_name().to_owned()))
                .collect();
            format!("there is no column {name}; the columns are {}", names.join(", "))
        })?;
        Ok(SortKey { column, descends })
    }
}

/// A state, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateFilter {
    /// Not started, and not held
    #[value(aliases = ["pending", "pd", "queued"])]
    Waiting,
    /// Held until its release
    Held,
    /// Runs, in its window or on idle resources
    #[value(alias = "r")]
    Running,
    /// On idle resources, before its window
    Opportunistic,
    /// Suspended or parked
    Suspended,
    /// Ended in any way
    Ended,
    /// Ended with exit code 0
    #[value(aliases = ["completed", "cd"])]
    Done,
    /// Ended otherwise
    Failed,
    /// Cancelled by a user
    Cancelled,
}

impl StateFilter {
    /// Returns the state as requests name it.
    pub(crate) const fn name(self) -> StateName {
        match self {
            StateFilter::Waiting => StateName::Waiting,
            StateFilter::Held => StateName::Held,
            StateFilter::Running => StateName::Running,
            StateFilter::Opportunistic => StateName::Opportunistic,
            StateFilter::Suspended => StateName::Suspended,
            StateFilter::Ended => StateName::Ended,
            StateFilter::Done => StateName::Done,
            StateFilter::Failed => StateName::Failed,
            StateFilter::Cancelled => StateName::Cancelled,
        }
    }

    /// Returns whether it includes finished jobs.
    pub(crate) const fn is_of_ended(self) -> bool {
        matches!(self, StateFilter::Ended | StateFilter::Done | StateFilter::Failed | StateFilter::Cancelled)
    }
}
