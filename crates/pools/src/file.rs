//! What a file says of pools, as it is written.

use serde::Deserialize;
use toml::{Spanned, Value};

/// The part of a file that is about pools.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PoolsFile {
    /// How far the clock of the calendars is ahead of UTC, the whole year: `+01:00`.
    pub utc_offset: Option<Spanned<String>>,
    /// Batch's share of the machine; all of it, where it is left out.
    pub pool: Option<Spanned<PoolFile>>,
    /// The queues that divide it, in the order of their numbers.
    #[serde(rename = "queue", default)]
    pub queues: Vec<Spanned<QueueFile>>,
}

/// Batch's share of the machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolFile {
    /// Its processors, at all times that no rule of the calendar is about.
    pub cpus: Spanned<i64>,
    /// Its memory then, with a unit; not accounted where it is left out.
    pub memory: Option<Spanned<Value>>,
    /// When it has more, or less.
    #[serde(default)]
    pub calendar: Vec<Spanned<RuleFile>>,
}

/// A queue and its part of the pool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueFile {
    /// Its name.
    pub name: Spanned<String>,
    /// As of the pool; the only queue has all of the pool's, where they are left out.
    pub cpus: Option<Spanned<i64>>,
    /// As of the pool, and of its processors.
    pub memory: Option<Spanned<Value>>,
    /// As of the pool.
    #[serde(default)]
    pub calendar: Vec<Spanned<RuleFile>>,
    /// Its policy, where it is not that of all others.
    pub policy: Option<Spanned<String>>,
    /// Users who may use it.
    #[serde(default)]
    pub users: Vec<Spanned<Who>>,
    /// Groups who may use it.
    #[serde(default)]
    pub groups: Vec<Spanned<Who>>,
}

/// A user or a group. Whether there is one is for whoever lets jobs in to know.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a user or a group is a name, or a number of 0 or more")]
pub enum Who {
    /// By number.
    Number(u32),
    /// By name.
    Name(String),
}

/// Some hours of some days of each week, and how much there is then.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleFile {
    /// Days and ranges of them: `mon-fri`, `sat,sun`; every day, where they are left out.
    pub days: Option<Spanned<String>>,
    /// From this time of the day: `08:00`; from its beginning, where it is left out.
    pub from: Option<Spanned<String>>,
    /// To this one, on the next day, if it is not later; to the end of the day, where it is left out.
    pub to: Option<Spanned<String>>,
    /// The processors then; as at all other times, where they are left out.
    pub cpus: Option<Spanned<i64>>,
    /// The memory then; as at all other times, where it is left out.
    pub memory: Option<Spanned<Value>>,
}
