//! The JSON of a workload, as far as it is read.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;

use serde::Deserialize;
use serde::de::IgnoredAny;

#[derive(Deserialize)]
pub(super) struct Workload {
    #[serde(default)]
    pub(super) nb_res: Option<u32>,
    pub(super) jobs: Vec<JsonJob>,
    pub(super) profiles: BTreeMap<String, Profile>,
}

#[derive(Deserialize)]
pub(super) struct JsonJob {
    pub(super) id: Name,
    /// Seconds.
    pub(super) subtime: f64,
    pub(super) res: NonZeroU32,
    /// Seconds.
    #[serde(default)]
    walltime: Option<f64>,
    pub(super) profile: Name,
    /// Whatever else there is.
    #[serde(flatten)]
    #[expect(clippy::zero_sized_map_values, reason = "a set cannot be read from an object")]
    pub(super) others: BTreeMap<String, IgnoredAny>,
}

impl JsonJob {
    /// The walltime; -1 is how some write that there is none.
    pub(super) fn walltime(&self) -> Option<f64> {
        self.walltime.filter(|&walltime| walltime > 0.0)
    }
}

#[derive(Deserialize)]
pub(super) struct Profile {
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// Seconds, of a delay.
    pub(super) delay: Option<f64>,
    /// The profiles of a sequence.
    pub(super) seq: Option<Vec<Name>>,
    /// How often a sequence runs.
    #[serde(alias = "nb")]
    pub(super) repeat: Option<u32>,
    /// What it returns; other than 0 is a failure.
    #[serde(default)]
    pub(super) ret: i64,
}

/// A name, which older workloads write as a number.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Name {
    Number(u64),
    Text(String),
}

impl Name {
    /// The number in it: `12`, or `w0!12`.
    pub(super) fn number(&self) -> Option<i64> {
        let number = match self {
            Name::Number(number) => Some(*number),
            Name::Text(text) => text.rsplit('!').next().and_then(|last| last.parse().ok()),
        };
        // What the log's reader takes: fifteen digits.
        number.filter(|&number| number < 1_000_000_000_000_000).and_then(|number| i64::try_from(number).ok())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Number(number) => number.fmt(f),
            Name::Text(text) => text.fmt(f),
        }
    }
}
