//! The arguments of `miserly reservation`.

use clap::{Args, Subcommand, value_parser};
use jiff::Timestamp;
use jiff::civil::Weekday;
use miserly_api::submit::{length_of_time, memory, when};

use super::AskArgs;

/// The days of the week, as they are written.
const DAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

#[derive(Debug, Args)]
pub(crate) struct ReservationArgs {
    #[command(subcommand)]
    pub(crate) command: ReservationCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReservationCommand {
    /// Reserves resources for users or groups at some times, unless a promise would break; for operators
    ///
    /// A reservation is a queue of its own: its users submit to it with --reservation NAME. With --give-to another queue has the
    /// resources for a time.
    Add(Box<AddArgs>),
    /// Lists the reservations, by their next time
    List(AskArgs),
    /// Removes reservations without unfinished jobs; for operators
    Remove(RemoveArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// The name: letters, digits, - and _
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The processors
    #[arg(long, short, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) cpus: u64,

    /// The memory [default: that of its part of the processors]
    #[arg(long, short, visible_alias = "mem", value_name = "SIZE", value_parser = memory)]
    pub(crate) memory: Option<u64>,

    /// The GPUs
    #[arg(long, short = 'G', value_name = "N", default_value = "0")]
    pub(crate) gpus: u64,

    /// The beginning: 2026-03-01T08:00, 08:00 (the next one), +2h, tomorrow
    #[arg(long, value_name = "WHEN", value_parser = when, default_value = "now")]
    pub(crate) from: Timestamp,

    /// The length: seconds, or 90min, 12h, 7d
    #[arg(long = "for", value_name = "TIME", value_parser = length_of_time, required_unless_present = "to")]
    pub(crate) length: Option<u64>,

    /// The end, in the notation of --from
    #[arg(long, value_name = "WHEN", value_parser = when, conflicts_with = "length")]
    pub(crate) to: Option<Timestamp>,

    /// The number of weeks: at the same time of the clock in each
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=400), default_value = "1")]
    pub(crate) weeks: u16,

    /// The days of each week, such as mon,wed [default: the day of --from]
    #[arg(long, value_name = "DAYS", value_delimiter = ',', value_parser = day)]
    pub(crate) days: Vec<Weekday>,

    /// The users, by name or number
    #[arg(
        long,
        visible_alias = "user",
        value_name = "USERS",
        value_delimiter = ',',
        required_unless_present_any = ["groups", "give_to"]
    )]
    pub(crate) users: Vec<String>,

    /// The groups whose members may use it, by name or number
    #[arg(long, visible_alias = "group", value_name = "GROUPS", value_delimiter = ',')]
    pub(crate) groups: Vec<String>,

    /// The queue from whose pool the resources come [default: the first queue]
    #[arg(long, visible_short_alias = 'p', visible_alias = "partition", value_name = "QUEUE")]
    pub(crate) queue: Option<String>,

    /// The queue whose pool has the resources at these times, in place of a queue of its own
    #[arg(long, value_name = "QUEUE", conflicts_with_all = ["users", "groups", "policy"])]
    pub(crate) give_to: Option<String>,

    /// The policy of its jobs [default: conservative, which gives each job a promise]
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,

    #[command(flatten)]
    pub(crate) ask: AskArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The names
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,

    #[command(flatten)]
    pub(crate) ask: AskArgs,
}

fn day(text: &str) -> Result<Weekday, String> {
    let lower = text.to_lowercase();
    let found = DAYS.iter().find(|(name, _)| *name == lower);
    found.map(|(_, day)| *day).ok_or_else(|| {
        let names: Vec<&str> = DAYS.iter().map(|(name, _)| *name).collect();
        format!("write days: {}", names.join(", "))
    })
}
