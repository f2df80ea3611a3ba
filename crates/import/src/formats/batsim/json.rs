//! The parts of a workload's JSON that are read.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;

use serde::Deserialize;
use serde::de::IgnoredAny;

#[derive(Deserialize)]
pub(super) struct JsonWorkload {
    #[serde(default)]
    pub(super) nb_res: Option<u32>,
    pub(super) jobs: Vec<JsonJob>,
    pub(super) profiles: BTreeMap<String, JsonProfile>,
}

#[derive(Deserialize)]
pub(super) struct JsonJob {
    pub(super) id: JsonName,
    /// Seconds.
    pub(super) subtime: f64,
    pub(super) res: NonZeroU32,
    /// Seconds.
    #[serde(default)]
    walltime: Option<f64>,
    pub(super) profile: JsonName,
    /// Other fields.
    #[serde(flatten)]
    #[expect(clippy::zero_sized_map_values, reason = "a set cannot be read from an object")]
    pub(super) others: BTreeMap<String, IgnoredAny>,
}

impl JsonJob {
    /// Returns the walltime. Some workloads write -1 for none.
    pub(super) fn walltime(&self) -> Option<f64> {
        self.walltime.filter(|&walltime| walltime > 0.0)
    }
}

#[derive(Deserialize)]
pub(super) struct JsonProfile {
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// Seconds of a delay.
    pub(super) delay: Option<f64>,
    /// Profiles of a sequence.
    pub(super) seq: Option<Vec<JsonName>>,
    /// Number of repetitions of a sequence.
    #[serde(alias = "nb")]
    pub(super) repeat: Option<u32>,
    /// Return code; other than 0 is a failure.
    #[serde(default)]
    pub(super) ret: i64,
}

/// A name, which older workloads write as a number.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum JsonName {
    Number(u64),
    Text(String),
}

impl JsonName {
    /// Returns the number in the name: `12`, or `w0!12`.
    pub(super) fn number(&self) -> Option<i64> {
        let number = match self {
            JsonName::Number(number) => Some(*number),
            JsonName::Text(text) => text.rsplit('!').next().and_then(|last| last.parse().ok()),
        };
        // The limit of the log's reader: fifteen digits.
        number.filter(|&number| number < 1_000_000_000_000_000).and_then(|number| i64::try_from(number).ok())
    }
}

impl fmt::Display for JsonName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonName::Number(number) => number.fmt(f),
            JsonName::Text(text) => text.fmt(f),
        }
    }
}
