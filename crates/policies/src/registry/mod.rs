//! Every policy, once: its name, what it promises, its parameters, its paper, and how it is built.

mod chosen;

mod values;

mod domain;

mod error;

mod entries;

use std::fmt;

use miserly_core::{Machine, Policy, Sharing, Spread};

pub use chosen::Chosen;
pub use domain::Domain;
pub use error::PolicyError;

use self::entries::{backfill, classes, equipartition, gang, immediate, priority, suspension, window};
use self::values::Values;
use crate::backfill::Backfilling;

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
#[derive(Clone, Copy, Debug, PartialEq)]
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

/// What machines a policy knows how to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunsOn {
    /// One host with nothing but processors.
    Processors,
    /// Hosts that jobs share, each job on one of them.
    SharedHosts,
    /// Hosts, each job on one of them.
    OneHostEach,
    /// Hosts of any kind.
    Hosts,
    /// Hosts of any kind, and pools that vary over time.
    Pools,
    /// One host, or a pool that may vary over time.
    OnePool,
    /// One host that jobs share, the same at all times.
    OneHost,
}

impl RunsOn {
    /// What it says of a machine that it does not know how to use.
    fn refuses(self, machine: &Machine) -> Option<&'static str> {
        let shared = machine.how_shared() == Sharing::Shared && machine.spread() == Spread::One;
        let pools = matches!(self, RunsOn::Pools | RunsOn::OnePool);
        match self {
            _ if machine.varies() && !pools => Some("machines that have the same at all times"),
            RunsOn::Processors if !machine.is_plain() => Some("one host of processors, without memory"),
            RunsOn::OneHostEach if machine.spread() != Spread::One => {
                Some("hosts with each job on one of them (span one)")
            }
            RunsOn::SharedHosts if !shared => {
                Some("hosts that jobs share, each job on one of them (span one)")
            }
            RunsOn::OnePool | RunsOn::OneHost if !shared || machine.hosts().len() > 1 => {
                Some("one host that jobs share")
            }
            _ => None,
        }
    }
}

/// Builds a policy that runs within another one.
type BuildWithin = fn(&Values, &Machine) -> Box<dyn Backfilling>;

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
    runs_on: RunsOn,
    /// Whether it heeds what users ask for besides resources and time ([`miserly_core::Terms`]): earliest starts and deadlines.
    pub heeds_terms: bool,
    build: fn(&Values, &Machine) -> Box<dyn Policy>,
    /// How it is built to run within another one, if it can.
    within: Option<BuildWithin>,
    promised: fn(&Values) -> Promises,
}

/// Every policy.
pub const POLICIES: &[Registered] = &[
    backfill::FCFS,
    backfill::EASY,
    backfill::CONSERVATIVE,
    backfill::SORTED,
    window::MISER,
    priority::PRIORITY_BACKFILL,
    priority::PRIORITY_BF,
    priority::LXFW_BF,
    priority::LXF_BACKFILL,
    priority::FCFS_BACKFILL,
    priority::SJF_BACKFILL,
    immediate::IMMEDIATE,
    immediate::SOON,
    suspension::SS,
    suspension::TSS,
    suspension::SRT,
    suspension::IS,
    suspension::NS,
    classes::LSF,
    equipartition::EQSPATIAL,
    gang::GANG,
];

/// Two entries are the same if they have the same name: a name is registered once.
impl PartialEq for Registered {
    fn eq(&self, other: &Registered) -> bool {
        self.name == other.name
    }
}

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
