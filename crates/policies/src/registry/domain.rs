//! The values that a parameter of a policy can have.

use std::fmt;

use miserly_core::Span;
use miserly_formula::presets::PRESETS;
use miserly_units::{UnitError, parse_duration_from};

use super::Registry;
use super::error::nearest;
use crate::shared::{Criterion, Order, Priority};

/// A word and its meaning.
pub(super) type Word = (&'static str, &'static str);

/// The values that a parameter can have.
#[derive(Clone, Debug)]
pub enum Domain {
    /// An order of the queue: by a criterion, by a preset of the literature, or by a formula in
    /// quotes.
    Order,
    /// One of these words, each with its meaning.
    Choice(Vec<(&'static str, &'static str)>),
    /// A number that is not negative.
    Number,
    /// A number, at least this one, or one of these words, each with its meaning.
    NumberOr(f64, Vec<(&'static str, &'static str)>),
    /// This number of non-negative numbers, with blanks between them, or one of these words, each
    /// with its meaning.
    NumbersOr(usize, Vec<(&'static str, &'static str)>),
    /// A whole number from the first of these to the second.
    Integer(u64, u64),
    /// A whole number from the first of these to the second, or one of these words, each with its
    /// meaning.
    IntegerOr(u64, u64, Vec<(&'static str, &'static str)>),
    /// Yes or no.
    Flag,
    /// A backfill policy of this registry, with its parameters in quotes if it has any.
    Policy(Registry),
    /// A tree of shares in quotes, or none.
    Shares,
    /// Limits of running jobs in quotes, or none.
    RunningLimits,
    /// Rules of preemption in quotes, or none.
    Preemption,
    /// Weights of resources in quotes, or none.
    Billing,
    /// A duration, as `miserly_units` reads it.
    Duration {
        /// The shortest, in seconds.
        least: u64,
        /// Whether it may also be `none`, which is for ever.
        none: bool,
    },
}

const FLAG: [Word; 2] = [("true", "yes"), ("false", "no")];

pub(super) const NEVER: Word = ("none", "never");

const NO_SHARES: Word = ("none", "no tree");
const NO_LIMITS: Word = ("none", "no limits");
const NO_BILLING: Word = ("none", "processors cost 1");
const NO_PREEMPTION: Word = ("none", "no job is preempted");

impl Domain {
    /// Returns every value that has a name, with its meaning.
    pub fn values(&self) -> Vec<(&'static str, &'static str)> {
        match self {
            Domain::Order => {
                let criteria = Criterion::ALL.iter().map(|&(_, name, meaning)| (name, meaning));
                criteria.chain(PRESETS.iter().map(|preset| (preset.name, preset.title))).collect()
            }
            Domain::Choice(words)
            | Domain::IntegerOr(_, _, words)
            | Domain::NumberOr(_, words)
            | Domain::NumbersOr(_, words) => words.clone(),
            Domain::Flag => FLAG.to_vec(),
            Domain::Policy(registry) => {
                let inner = registry.policies().filter(|policy| policy.is_backfill(registry));
                inner.map(|policy| (policy.name, policy.title)).collect()
            }
            Domain::Duration { none: true, .. } => vec![NEVER],
            Domain::Shares => vec![NO_SHARES],
            Domain::RunningLimits => vec![NO_LIMITS],
            Domain::Preemption => vec![NO_PREEMPTION],
            Domain::Billing => vec![NO_BILLING],
            Domain::Number | Domain::Integer(..) | Domain::Duration { none: false, .. } => vec![],
        }
    }

    /// Returns the named value or the unit that is most similar to this text.
    pub(super) fn nearest(&self, text: &str) -> Option<&'static str> {
        if let (Domain::Duration { .. }, Err(UnitError::TimeUnit { nearest, .. })) =
            (self, parse_duration_from(text, Span::ZERO))
        {
            return nearest;
        }
        nearest(text, self.values().into_iter().map(|(name, _)| name))
    }
}

/// Returns the number that `text` denotes, if it is at least `least`.
pub(super) fn number(text: &str, least: f64) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= least)
}

/// Returns the numbers that `text` denotes, separated by blanks, if there are as many.
pub(super) fn numbers<const N: usize>(text: &str) -> Option<[f64; N]> {
    let numbers: Option<Vec<f64>> = text.split_whitespace().map(|text| number(text, 0.0)).collect();
    numbers?.try_into().ok()
}

/// Returns the order by the criterion or preset of that name.
pub(super) fn order(name: &str) -> Option<Order> {
    let criterion = Criterion::ALL.iter().find(|(_, known, _)| *known == name);
    let criterion = criterion.map(|(criterion, ..)| Order::by(*criterion));
    criterion.or_else(|| Priority::preset(name).map(Order::by_formula))
}

/// Returns the duration that `text` denotes, if it is not shorter than `least` seconds.
pub(super) fn duration(text: &str, least: u64) -> Option<Span> {
    let least = i64::try_from(least).ok().and_then(Span::from_secs).unwrap_or(Span::MAX);
    parse_duration_from(text, least).ok()
}

/// Formats the values in words, for messages and pages.
impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = || self.values().into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
        match self {
            Domain::Number => f.write_str("a number, 0 or more"),
            Domain::NumberOr(least, _) => write!(f, "a number, {least} or more, or one of {}", names()),
            Domain::NumbersOr(count, _) => {
                write!(f, "{count} numbers in quotes with blanks between them, or one of {}", names())
            }
            Domain::Integer(least, u64::MAX) => write!(f, "a whole number, {least} or more"),
            Domain::Integer(least, most) => write!(f, "a whole number from {least} to {most}"),
            Domain::IntegerOr(least, most, _) => {
                write!(f, "a whole number from {least} to {most}, or one of {}", names())
            }
            Domain::Order => write!(f, "one of {}; or a formula in quotes", names()),
            Domain::Shares => f.write_str("none, or a tree of shares in quotes, such as '2*(u1, u2), 1*g3'"),
            Domain::RunningLimits => f.write_str(
                "none, or limits of running jobs in quotes, such as '1+3: user_jobs=2, user_procs=64; all: jobs=10, procs=1000'",
            ),
            Domain::Billing => f.write_str(
                "none, or weights of resources in quotes, such as '1+3: cpus=1, memory=0.25, gpus=4, hosts=0, sum=largest'",
            ),
            Domain::Preemption => f.write_str(
                "none, or rules of preemption in quotes, such as '1: by=2+3, mode=requeue, rank=1, exempt=5min, grace=30s; 2: by=3, mode=cancel, rank=2'",
            ),
            Domain::Duration { least, none } => {
                let or_none = if *none { ", or none" } else { "" };
                write!(f, "a duration of {least}s or more, such as 90, 90s, 15min, 50h or 1d12h{or_none}")
            }
            Domain::Choice(_) | Domain::Flag | Domain::Policy(_) => write!(f, "one of {}", names()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, least: u64, expect: Option<i64>) {
        assert_eq!(duration(text, least), expect.and_then(Span::from_secs), "{text}");
    }

    #[test]
    fn durations_in_seconds_or_with_a_unit() {
        for (text, secs) in [("90", 90), ("5m", 300), ("15min", 900), ("50h", 180_000), ("1d12h", 129_600)] {
            check(text, 1, Some(secs));
        }
        check("10000000000", 1, Some(10_000_000_000));
        for text in ["0", "0.5", "10000000001", "115741d", "18446744073709551615h", "-1", "m", "", "none"] {
            check(text, 1, None);
        }
        check("0", 0, Some(0));
    }

    #[test]
    fn durations_in_words() {
        let domain = Domain::Duration { least: 0, none: true };
        assert_eq!(
            domain.to_string(),
            "a duration of 0s or more, such as 90, 90s, 15min, 50h or 1d12h, or none"
        );
    }
}
