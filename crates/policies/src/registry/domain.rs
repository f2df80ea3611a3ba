//! What a parameter of a policy may be.

use std::fmt;

use miserly_core::Span;
use miserly_formula::FormulaError;
use miserly_formula::presets::PRESETS;
use miserly_units::{UnitError, parse_duration_from};

use super::error::{PolicyError, nearest};
use super::{Chosen, POLICIES};
use crate::shared::{Criterion, Order, Priority};
use crate::spec::Written;

/// What a parameter may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// An order of the queue: by a criterion, by a preset of the literature, or by a formula in quotes.
    Order,
    /// One of these words, each with its meaning.
    Choice(&'static [(&'static str, &'static str)]),
    /// A number that is not negative.
    Number,
    /// A number, at least this one, or one of these words, each with its meaning.
    NumberOr(f64, &'static [(&'static str, &'static str)]),
    /// So many numbers that are not negative, with blanks between them, or one of these words, each with its meaning.
    NumbersOr(usize, &'static [(&'static str, &'static str)]),
    /// A whole number from the first of these to the second.
    Integer(u64, u64),
    /// A whole number from the first of these to the second, or one of these words, each with its meaning.
    IntegerOr(u64, u64, &'static [(&'static str, &'static str)]),
    /// Yes or no.
    Flag,
    /// A backfill policy, with its parameters in quotes if it has any.
    Policy,
    /// A duration, as `miserly_units` reads it.
    Duration {
        /// The shortest, in seconds.
        least: u64,
        /// Whether it may also be `none`, which is for ever.
        none: bool,
    },
}

/// A value that a parameter was given, or has by default.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Order(Order),
    Word(&'static str),
    Number(f64),
    Numbers(Vec<f64>),
    Integer(u64),
    Flag(bool),
    Policy(Box<Chosen>),
    /// `none` is [`Span::MAX`].
    Duration(Span),
}

/// Why a text is no value of a domain.
#[derive(Debug)]
pub(super) enum NoValue {
    /// It is none, and this is the value that looks most like it.
    Unknown { nearest: Option<&'static str> },
    /// It is no formula.
    Formula(Box<FormulaError>),
    /// It is no policy.
    Policy(Box<PolicyError>),
}

const FLAG: &[(&str, &str)] = &[("true", "yes"), ("false", "no")];

const NEVER: (&str, &str) = ("none", "never");

impl Domain {
    /// Every value that has a name, with its meaning.
    pub fn values(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Domain::Order => {
                let criteria = Criterion::ALL.iter().map(|&(_, name, meaning)| (name, meaning));
                criteria.chain(PRESETS.iter().map(|preset| (preset.name, preset.title))).collect()
            }
            Domain::Choice(words)
            | Domain::IntegerOr(_, _, words)
            | Domain::NumberOr(_, words)
            | Domain::NumbersOr(_, words) => words.to_vec(),
            Domain::Flag => FLAG.to_vec(),
            Domain::Policy => {
                let within = POLICIES.iter().filter(|policy| policy.within.is_some());
                within.map(|policy| (policy.name, policy.summary)).collect()
            }
            Domain::Duration { none: true, .. } => vec![NEVER],
            Domain::Number | Domain::Integer(..) | Domain::Duration { none: false, .. } => vec![],
        }
    }

    /// The value that is written so; quotes make a formula of an order, and no difference to all else.
    pub(super) fn read(self, written: &Written) -> Result<Value, NoValue> {
        match (self, written) {
            (Domain::Order, Written::Quoted(text)) => {
                let priority = Priority::largest(text).map_err(|problem| NoValue::Formula(problem.into()))?;
                Ok(Value::Order(Order::by_formula(priority)))
            }
            (Domain::Policy, _) => {
                let chosen: Chosen =
                    written.text().parse().map_err(|problem| NoValue::Policy(Box::new(problem)))?;
                if chosen.policy().within.is_none() {
                    return Err(NoValue::Unknown { nearest: None });
                }
                Ok(Value::Policy(chosen.into()))
            }
            _ => self.named(written.text()),
        }
    }

    /// The value of that name.
    pub(super) fn named(self, text: &str) -> Result<Value, NoValue> {
        let value = match self {
            Domain::Order => order(text).map(Value::Order),
            Domain::Choice(words) => named_word(words, text),
            Domain::IntegerOr(least, most, words) => {
                Domain::Integer(least, most).named(text).ok().or_else(|| named_word(words, text))
            }
            Domain::Number => number(text, 0.0).map(Value::Number),
            Domain::NumberOr(least, words) => {
                number(text, least).map(Value::Number).or_else(|| named_word(words, text))
            }
            Domain::NumbersOr(count, words) => {
                let numbers: Option<Vec<f64>> =
                    text.split_whitespace().map(|text| number(text, 0.0)).collect();
                let right = numbers.filter(|numbers| numbers.len() == count);
                right.map(Value::Numbers).or_else(|| named_word(words, text))
            }
            Domain::Integer(least, most) => {
                text.parse().ok().filter(|number| (least..=most).contains(number)).map(Value::Integer)
            }
            Domain::Flag => text.parse().ok().map(Value::Flag),
            Domain::Policy => text.parse().ok().map(|chosen: Chosen| Value::Policy(chosen.into())),
            Domain::Duration { none: true, .. } if text == NEVER.0 => Some(Value::Duration(Span::MAX)),
            Domain::Duration { least, .. } => return duration(text, least).map(Value::Duration),
        };
        value.ok_or_else(|| NoValue::Unknown {
            nearest: nearest(text, self.values().into_iter().map(|(name, _)| name)),
        })
    }
}

/// The number that is written so, if it is not less than that.
fn number(text: &str, least: f64) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= least)
}

fn named_word(words: &'static [(&'static str, &'static str)], text: &str) -> Option<Value> {
    words.iter().find(|(word, _)| *word == text).map(|(word, _)| Value::Word(word))
}

/// The criterion or preset of that name.
fn order(name: &str) -> Option<Order> {
    let criterion = Criterion::ALL.iter().find(|(_, known, _)| *known == name);
    let criterion = criterion.map(|(criterion, ..)| Order::by(*criterion));
    criterion.or_else(|| Priority::preset(name).map(Order::by_formula))
}

/// Returns the duration that `text` denotes, if it is not shorter than `least` seconds.
fn duration(text: &str, least: u64) -> Result<Span, NoValue> {
    let least = i64::try_from(least).ok().and_then(Span::from_secs).unwrap_or(Span::MAX);
    parse_duration_from(text, least).map_err(|problem| match problem {
        UnitError::TimeUnit { nearest, .. } => NoValue::Unknown { nearest },
        _ => NoValue::Unknown { nearest: None },
    })
}

/// What a value has to be, as a message or a page says it.
impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Domain::Number => f.write_str("a number, 0 or more"),
            Domain::NumberOr(least, _) => write!(f, "a number, {least} or more, or one of {}", names(*self)),
            Domain::NumbersOr(count, _) => {
                write!(f, "{count} numbers in quotes with blanks between them, or one of {}", names(*self))
            }
            Domain::Integer(least, u64::MAX) => write!(f, "a whole number, {least} or more"),
            Domain::Integer(least, most) => write!(f, "a whole number from {least} to {most}"),
            Domain::IntegerOr(least, most, _) => {
                write!(f, "a whole number from {least} to {most}, or one of {}", names(*self))
            }
            Domain::Order => write!(f, "one of {}; or a formula in quotes", names(*self)),
            Domain::Duration { least, none } => {
                let or_none = if *none { ", or none" } else { "" };
                write!(f, "a duration of {least}s or more, such as 90, 90s, 15min, 50h or 1d12h{or_none}")
            }
            Domain::Choice(_) | Domain::Flag | Domain::Policy => write!(f, "one of {}", names(*self)),
        }
    }
}

fn names(domain: Domain) -> String {
    let names: Vec<&str> = domain.values().into_iter().map(|(name, _)| name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(domain: Domain, text: &str, expect: Option<i64>) {
        let got = domain.named(text).ok();
        assert_eq!(got, expect.map(|secs| Value::Duration(Span::from_secs(secs).unwrap())), "{text}");
    }

    #[test]
    fn durations_in_seconds_or_with_a_unit() {
        let domain = Domain::Duration { least: 1, none: false };
        for (text, secs) in [("90", 90), ("5m", 300), ("15min", 900), ("50h", 180_000), ("1d12h", 129_600)] {
            check(domain, text, Some(secs));
        }
        check(domain, "10000000000", Some(10_000_000_000));
        for text in ["0", "0.5", "10000000001", "115741d", "18446744073709551615h", "-1", "m", "", "none"] {
            check(domain, text, None);
        }
        check(Domain::Duration { least: 0, none: false }, "0", Some(0));
    }

    #[test]
    fn no_duration_is_for_ever() {
        let domain = Domain::Duration { least: 0, none: true };
        assert_eq!(domain.named("none").ok(), Some(Value::Duration(Span::MAX)));
        assert_eq!(
            domain.to_string(),
            "a duration of 0s or more, such as 90, 90s, 15min, 50h or 1d12h, or none"
        );
    }
}
