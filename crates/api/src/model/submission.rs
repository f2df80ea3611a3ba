//! What a user asks for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A job, or an array of jobs, as it is asked for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The program and its arguments; with `script`, the arguments of the script.
    #[serde(default)]
    pub command: Vec<String>,
    /// The text of a script, which is run as it was when it was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// What people call it; the program's name where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The folder that it runs in.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub directory: PathBuf,
    /// Its environment, and nothing else.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// How many processors it asks for.
    #[serde(default = "one")]
    pub cpus: u64,
    /// How much memory it asks for, bytes; the queue's default where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// For how long, seconds.
    pub time: f64,
    /// The queue; the first one where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Not before this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub begin: Option<Timestamp>,
    /// To be over by this instant, or not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub deadline: Option<Timestamp>,
    /// Not before these jobs have ended, however they end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<i64>,
    /// As many jobs as this says, all alike but for their index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Array>,
    /// Its work may be thrown away and done again.
    #[serde(default)]
    pub restartable: bool,
    /// Not to run ahead of its start on what is idle.
    #[serde(default)]
    pub no_opportunistic: bool,
    /// Submitted, but not to run until it is released.
    #[serde(default)]
    pub hold: bool,
    /// Where its output goes; `%j` is its number, `%A` the array's, `%a` the index in it, `%x` its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub output: Option<PathBuf>,
    /// Where its errors go; with its output where that is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub error: Option<PathBuf>,
    /// The mode mask of the files that it makes.
    #[serde(default = "mask")]
    pub umask: u32,
}

/// The indexes of an array of jobs: from first to last by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Array {
    /// The first index.
    pub first: u32,
    /// The last index, which is one of them if the step meets it.
    pub last: u32,
    /// From each to the next; at least 1.
    #[serde(default = "one_step")]
    pub step: u32,
}

const fn one() -> u64 {
    1
}

const fn one_step() -> u32 {
    1
}

const fn mask() -> u32 {
    0o077
}

impl Array {
    /// The indexes, in order.
    pub fn indexes(self) -> impl Iterator<Item = u32> {
        (self.first..=self.last).step_by(usize::try_from(self.step.max(1)).unwrap_or(usize::MAX))
    }
}
