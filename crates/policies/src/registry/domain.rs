//! What a parameter of a policy may be.

use std::fmt;

use super::error::nearest;
use crate::shared::Criterion;

/// What a parameter may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// An order of the queue.
    Order,
    /// One of these words, each with its meaning.
    Choice(&'static [(&'static str, &'static str)]),
    /// A number that is not negative.
    Number,
    /// A whole number from the first of these to the second.
    Integer(u64, u64),
    /// Yes or no.
    Flag,
}

/// A value that a parameter was given, or has by default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Order(Criterion),
    Word(&'static str),
    Number(f64),
    Integer(u64),
    Flag(bool),
}

/// A text that is no value of a domain, and the value that looks most like it.
#[derive(Debug)]
pub(super) struct NoValue {
    pub(super) nearest: Option<&'static str>,
}

const FLAG: &[(&str, &str)] = &[("true", "yes"), ("false", "no")];

impl Domain {
    /// Every value, with its meaning, where they can be listed.
    pub fn values(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Domain::Order => Criterion::ALL.iter().map(|&(_, name, meaning)| (name, meaning)).collect(),
            Domain::Choice(words) => words.to_vec(),
            Domain::Flag => FLAG.to_vec(),
            Domain::Number | Domain::Integer(..) => vec![],
        }
    }

    pub(super) fn parse(self, text: &str) -> Result<Value, NoValue> {
        let value = match self {
            Domain::Order => {
                let found = Criterion::ALL.iter().find(|(_, name, _)| *name == text);
                found.map(|(criterion, ..)| Value::Order(*criterion))
            }
            Domain::Choice(words) => {
                words.iter().find(|(word, _)| *word == text).map(|(word, _)| Value::Word(word))
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
        value.ok_or_else(|| NoValue {
            nearest: nearest(text, self.values().into_iter().map(|(name, _)| name)),
        })
    }
}

/// What a value has to be, as a message or a page says it.
impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Domain::Number => f.write_str("a number, 0 or more"),
            Domain::Integer(least, u64::MAX) => write!(f, "a whole number, {least} or more"),
            Domain::Integer(least, most) => write!(f, "a whole number from {least} to {most}"),
            Domain::Order | Domain::Choice(_) | Domain::Flag => {
                let names: Vec<&str> = self.values().into_iter().map(|(name, _)| name).collect();
                write!(f, "one of {}", names.join(", "))
            }
        }
    }
}
