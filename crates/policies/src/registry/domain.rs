//! What a parameter of a policy may be.

use std::fmt;

use miserly_formula::FormulaError;
use miserly_formula::presets::PRESETS;

use super::error::nearest;
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
    /// A whole number from the first of these to the second.
    Integer(u64, u64),
    /// A whole number from the first of these to the second, or one of these words, each with its meaning.
    IntegerOr(u64, u64, &'static [(&'static str, &'static str)]),
    /// Yes or no.
    Flag,
}

/// A value that a parameter was given, or has by default.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Order(Order),
    Word(&'static str),
    Number(f64),
    Integer(u64),
    Flag(bool),
}

/// Why a text is no value of a domain.
#[derive(Debug)]
pub(super) enum NoValue {
    /// It is none, and this is the value that looks most like it.
    Unknown { nearest: Option<&'static str> },
    /// It is no formula.
    Formula(Box<FormulaError>),
}

const FLAG: &[(&str, &str)] = &[("true", "yes"), ("false", "no")];

impl Domain {
    /// Every value that has a name, with its meaning.
    pub fn values(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Domain::Order => {
                let criteria = Criterion::ALL.iter().map(|&(_, name, meaning)| (name, meaning));
                criteria.chain(PRESETS.iter().map(|preset| (preset.name, preset.title))).collect()
            }
            Domain::Choice(words) | Domain::IntegerOr(_, _, words) => words.to_vec(),
            Domain::Flag => FLAG.to_vec(),
            Domain::Number | Domain::Integer(..) => vec![],
        }
    }

    /// The value that is written so; quotes make a formula of an order, and no difference to all else.
    pub(super) fn read(self, written: &Written) -> Result<Value, NoValue> {
        match (self, written) {
            (Domain::Order, Written::Quoted(text)) => {
                let priority = Priority::largest(text).map_err(|problem| NoValue::Formula(problem.into()))?;
                Ok(Value::Order(Order::by_formula(priority)))
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
            Domain::Number => text
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite() && *number >= 0.0)
                .map(Value::Number),
            Domain::Integer(least, most) => {
                text.parse().ok().filter(|number| (least..=most).contains(number)).map(Value::Integer)
            }
            Domain::Flag => text.parse().ok().map(Value::Flag),
        };
        value.ok_or_else(|| NoValue::Unknown {
            nearest: nearest(text, self.values().into_iter().map(|(name, _)| name)),
        })
    }
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

/// What a value has to be, as a message or a page says it.
impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Domain::Number => f.write_str("a number, 0 or more"),
            Domain::Integer(least, u64::MAX) => write!(f, "a whole number, {least} or more"),
            Domain::Integer(least, most) => write!(f, "a whole number from {least} to {most}"),
            Domain::IntegerOr(least, most, _) => {
                write!(f, "a whole number from {least} to {most}, or one of {}", names(*self))
            }
            Domain::Order => write!(f, "one of {}; or a formula in quotes", names(*self)),
            Domain::Choice(_) | Domain::Flag => write!(f, "one of {}", names(*self)),
        }
    }
}

fn names(domain: Domain) -> String {
    let names: Vec<&str> = domain.values().into_iter().map(|(name, _)| name).collect();
    names.join(", ")
}
