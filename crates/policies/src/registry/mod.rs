//! Every policy, once: its name, what it promises, its parameters, its paper, and how it is built.

mod chosen;

mod values;

mod domain;

mod error;

mod entries;

use std::fmt;

use miserly_core::{Machine, Policy};

pub use chosen::Chosen;
pub use domain::Domain;
pub use error::PolicyError;

use self::values::Values;

/// To whom a policy promises a latest start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promises {
    /// To nobody.
    Nothing,
    /// To the head of the queue.
    Head,
    /// To every job, when it is submitted.
    EveryJob,
}

impl Promises {
    /// The word that tables and files use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Promises::Nothing => "nothing",
            Promises::Head => "the head of the queue",
            Promises::EveryJob => "every job",
        }
    }
}

/// What a parameter is where it is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// This value.
    Is(&'static str),
    /// What the parameter of that name is.
    SameAs(&'static str),
    /// The seed of the run.
    SeedOfRun,
}

impl fmt::Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefaultValue::Is(value) => f.write_str(value),
            DefaultValue::SameAs(name) => write!(f, "the same as {name}"),
            DefaultValue::SeedOfRun => f.write_str("the run's"),
        }
    }
}

/// A parameter of a policy.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub domain: Domain,
    /// What it is where it is not given.
    pub default: DefaultValue,
    /// What it does.
    pub doc: &'static str,
}

/// A registered policy.
#[derive(Debug)]
pub struct Registered {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What it promises, in words, with the conditions.
    pub promises: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// Whether it runs on machines of many hosts, with memory.
    hosts: bool,
    build: fn(&Values, &Machine) -> Box<dyn Policy>,
    promised: fn(&Values) -> Promises,
}

/// Every policy.
pub const POLICIES: &[Registered] = &[
    entries::backfill::FCFS,
    entries::backfill::EASY,
    entries::backfill::CONSERVATIVE,
    entries::backfill::SORTED,
    entries::equipartition::EQSPATIAL,
];

/// The policy of that name, if there is one.
pub fn find(name: &str) -> Option<&'static Registered> {
    POLICIES.iter().find(|policy| policy.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_value() {
        for policy in POLICIES {
            for (position, param) in policy.params.iter().enumerate() {
                match param.default {
                    DefaultValue::Is(text) => assert!(param.domain.named(text).is_ok(), "{}", param.name),
                    DefaultValue::SameAs(other) => {
                        let mut before = policy.params[..position].iter();
                        assert!(before.any(|param| param.name == other), "{}", param.name);
                    }
                    DefaultValue::SeedOfRun => assert_eq!(param.domain, Domain::Integer(0, u64::MAX)),
                }
            }
        }
    }
}
