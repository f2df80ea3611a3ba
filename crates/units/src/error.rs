//! Reasons why a text is no duration and no amount of memory.

/// The forms of a duration, for messages.
const DURATIONS: &str = "write seconds, or units such as 90s, 15min, 1d12h, 1:30:00 or 2-12:00:00";

/// The forms of an amount of memory, for messages.
const MEMORY: &str = "write a number and a unit, such as 512MiB or 8GiB";

/// A text that is no duration, or no amount of memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Text outside the grammar of durations.
    #[error("{text:?} is not a duration; {DURATIONS}")]
    Duration {
        /// The text.
        text: String,
    },
    /// A unit of time that does not exist.
    #[error("{text:?}: no unit of time {unit:?}{}; the units are us, ms, s, min, h, d and w", suggestion(*.nearest))]
    TimeUnit {
        /// The text.
        text: String,
        /// The unit in it.
        unit: String,
        /// The unit that looks most like it.
        nearest: Option<&'static str>,
    },
    /// A duration below zero.
    #[error("{text:?}: a duration is 0 or more")]
    Negative {
        /// The text.
        text: String,
    },
    /// Two numbers and a colon: hours and minutes, or minutes and seconds.
    #[error("{text:?} is ambiguous; write {text}:00, {first}h{second}min or {first}min{second}s")]
    Ambiguous {
        /// The text.
        text: String,
        /// The number before the colon.
        first: String,
        /// The number after it.
        second: String,
    },
    /// A duration with a part of a microsecond, or of a second where whole seconds are needed.
    #[error("{text:?}: a duration here is a whole number of {unit}")]
    TooFine {
        /// The text.
        text: String,
        /// The smallest unit.
        unit: &'static str,
    },
    /// A duration below the shortest of its use.
    #[error("{text:?}: a duration here is {least} or more")]
    TooShort {
        /// The text.
        text: String,
        /// The shortest.
        least: String,
    },
    /// A duration above [`LONGEST`](crate::LONGEST).
    #[error("{text:?}: a duration is at most 10000000000s")]
    TooLong {
        /// The text.
        text: String,
    },
    /// A duration, or an amount of memory, that no number here can hold.
    #[error("{text:?} is too large")]
    TooLarge {
        /// The text.
        text: String,
    },
    /// Text outside the grammar of memory.
    #[error("{text:?} is not an amount of memory; {MEMORY}")]
    Memory {
        /// The text.
        text: String,
    },
    /// An amount of memory without a unit.
    #[error("{text:?} has no unit of memory; write {text}MiB or {text}GiB")]
    NoMemoryUnit {
        /// The text.
        text: String,
    },
    /// A unit of memory that does not exist.
    #[error("{text:?}: no unit of memory {unit:?}{}; the units are KiB, MiB, GiB and TiB", suggestion(*.nearest))]
    MemoryUnit {
        /// The text.
        text: String,
        /// The unit in it.
        unit: String,
        /// The unit that looks most like it.
        nearest: Option<&'static str>,
    },
    /// No memory.
    #[error("{text:?}: an amount of memory is above 0")]
    NoMemory {
        /// The text.
        text: String,
    },
}

fn suggestion(nearest: Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!(", did you mean {nearest}?"))
}

/// Returns the unit with the name that looks most like `wanted`, if one does.
pub(crate) fn nearest(wanted: &str, units: &[(&'static str, &[&str])]) -> Option<&'static str> {
    let wanted = wanted.to_lowercase();
    let names = units.iter().flat_map(|(unit, names)| names.iter().map(move |name| (*unit, *name)));
    let rated = names.map(|(unit, name)| (strsim::jaro_winkler(&wanted, name), unit));
    let best = rated.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(likeness, _)| *likeness > 0.7).map(|(_, unit)| unit)
}
