//! The values that Slurm prints.

use serde::{Deserialize, Serialize};

/// A time limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// None.
    #[default]
    Unlimited,
    /// A number of seconds.
    Seconds(u64),
}

impl Limit {
    /// Returns the longest runtime in seconds: at most a year, also without a limit.
    pub fn seconds(self) -> i64 {
        const LONGEST: i64 = 365 * 86_400;
        match self {
            Limit::Unlimited => LONGEST,
            Limit::Seconds(seconds) => i64::try_from(seconds).unwrap_or(LONGEST).min(LONGEST),
        }
    }
}

/// An amount of memory, MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// On each node.
    PerNode(u64),
    /// For each processor.
    PerCpu(u64),
}

impl Amount {
    /// Returns the number of MiB, on each node or for each processor.
    pub(crate) const fn mebi(self) -> u64 {
        match self {
            Amount::PerNode(mebi) | Amount::PerCpu(mebi) => mebi,
        }
    }
}

/// Returns a value, unless it stands for none.
pub(super) fn present(text: &str) -> Option<&str> {
    (!matches!(text, "" | "(null)" | "N/A" | "None" | "NONE")).then_some(text)
}

/// Returns the names of a list with commas.
pub(super) fn parts(list: Option<&str>) -> Vec<String> {
    list.unwrap_or_default().split(',').filter_map(present).map(str::to_owned).collect()
}

/// Returns the words of a list in lower case.
pub(super) fn words(list: &str, separators: [char; 2]) -> Vec<String> {
    list.split(separators).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Returns a time limit: `UNLIMITED`, or `[DAYS-]HOURS:MINUTES:SECONDS` of which the first parts may lack.
pub(crate) fn limit(text: &str) -> Option<Limit> {
    if matches!(text, "UNLIMITED" | "INFINITE" | "NOT_SET" | "Partition_Limit") {
        return Some(Limit::Unlimited);
    }
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let mut seconds = 0_u64;
    for part in clock.split(':') {
        seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
    }
    // `1-12` is a day and twelve hours.
    if text.contains('-') {
        let missing = 3_u32.checked_sub(u32::try_from(clock.split(':').count()).ok()?)?;
        seconds = seconds.checked_mul(60_u64.checked_pow(missing)?)?;
    }
    let days: u64 = days.parse().ok()?;
    days.checked_mul(86_400)?.checked_add(seconds).map(Limit::Seconds)
}

/// Returns an amount of memory, such as `4000M`, `62.50G` or `2Gc`. 0 is none: the whole node, where memory counts.
pub(crate) fn amount(text: &str) -> Option<Amount> {
    let (text, kind) = match text.strip_suffix('c') {
        Some(text) => (text, Amount::PerCpu as fn(u64) -> Amount),
        None => (text.strip_suffix('n').unwrap_or(text), Amount::PerNode as fn(u64) -> Amount),
    };
    let split = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let kibi = match unit {
        "K" => 1.0,
        "M" | "" => 1024.0,
        "G" => 1024.0 * 1024.0,
        "T" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    let mebi = (number * kibi / 1024.0).ceil() as u64;
    (mebi > 0).then(|| kind(mebi))
}

/// Returns the memory of a job that asks for none, from the values of a configuration or a partition.
pub(super) fn default_memory(value: &dyn Fn(&str) -> Option<String>) -> Option<Amount> {
    let mebi = |key: &str| value(key)?.parse().ok().filter(|mebi| *mebi > 0);
    mebi("DefMemPerCPU").map(Amount::PerCpu).or(mebi("DefMemPerNode").map(Amount::PerNode))
}
