//! Every policy, once: its name, what it promises, its parameters, its paper, and how it is built.

mod chosen;

mod values;

mod domain;

mod error;

use std::fmt;

use miserly_core::Policy;

pub use chosen::Chosen;
pub use domain::Domain;
pub use error::PolicyError;

use self::values::Values;

use crate::backfill::{Conservative, Easy, Fcfs, Replanned, Sorted};

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
    build: fn(&Values) -> Box<dyn Policy>,
    promised: fn(&Values) -> Promises,
}

const ZOTKIN: &str = "Zotkin, Keleher, Perkovic: Attacking the Bottlenecks of Backfilling Schedulers, 2000";

const QUEUE_ORDER: Param = Param {
    name: "order",
    domain: Domain::Order,
    default: DefaultValue::Is("arrival"),
    doc: "the order of the queue",
};

/// What goes for every order of a policy.
const WEIGHT: Param = Param {
    name: "weight",
    domain: Domain::Number,
    default: DefaultValue::Is("0"),
    doc: "added to a job's criterion for each second it waits, to 1 / estimate with shortest: bounds overtaking",
};

const DRAW: Param = Param {
    name: "draw",
    domain: Domain::Choice(&[("once", "one for each job"), ("pass", "new ones at each pass")]),
    default: DefaultValue::Is("once"),
    doc: "when the numbers of a random order are drawn",
};

const SEED: Param = Param {
    name: "seed",
    domain: Domain::Integer(0, u64::MAX),
    default: DefaultValue::SeedOfRun,
    doc: "the seed of these draws",
};

const EASY: &str = "Lifka: The ANL/IBM SP Scheduling System, 1995; Mu'alem, Feitelson, TPDS 12(6), 2001; its orders: Zotkin \
    et al., 2000; EASY-SJBF: Tsafrir, Etsion, Feitelson, TPDS 18(6), 2007";

/// Every policy.
pub const POLICIES: &[Registered] = &[
    Registered {
        name: "fcfs",
        summary: "no backfilling: starts the head of the queue while it fits, stops at the first that does not",
        promises: "nothing",
        source: ZOTKIN,
        params: &[QUEUE_ORDER, WEIGHT, DRAW, SEED],
        build: |values| Box::new(Fcfs::new(values.order("order"))),
        promised: |_| Promises::Nothing,
    },
    Registered {
        name: "easy",
        summary: "EASY backfilling: jobs may pass the head of the queue if they do not delay it",
        promises: "the head of the queue its shadow time, with order=arrival or hold=true; else nothing",
        source: EASY,
        params: &[
            QUEUE_ORDER,
            Param {
                name: "backfill",
                domain: Domain::Order,
                default: DefaultValue::SameAs("order"),
                doc: "the order of the candidates behind the head; backfill=shortest is EASY-SJBF",
            },
            Param {
                name: "hold",
                domain: Domain::Flag,
                default: DefaultValue::Is("false"),
                doc: "a head that has a shadow time stays the head, whoever sorts before it",
            },
            WEIGHT,
            DRAW,
            SEED,
        ],
        build: |values| {
            let easy = Easy::new(values.order("order"), values.order("backfill"));
            Box::new(easy.holding(values.flag("hold")))
        },
        promised: |values| {
            if values.flag("hold") || values.order("order").is_arrival() {
                Promises::Head
            } else {
                Promises::Nothing
            }
        },
    },
    Registered {
        name: "conservative",
        summary: "conservative backfilling: every job has a reservation, which never moves later",
        promises: "every job, when it is submitted; nothing with keep=false",
        source: ZOTKIN,
        params: &[
            Param {
                doc: "the order in which reservations are compressed; new ones are made in order of submission",
                ..QUEUE_ORDER
            },
            Param {
                name: "keep",
                domain: Domain::Flag,
                default: DefaultValue::Is("true"),
                doc: "false: all reservations are made anew at each pass, in the order of the queue",
            },
            WEIGHT,
            DRAW,
            SEED,
        ],
        build: |values| {
            let order = values.order("order");
            if values.flag("keep") {
                Box::new(Conservative::new(order))
            } else {
                Box::new(Replanned::new(order))
            }
        },
        promised: |values| if values.flag("keep") { Promises::EveryJob } else { Promises::Nothing },
    },
    Registered {
        name: "sorted",
        summary: "sorted backfilling: starts jobs in any order that leaves each its guarantee",
        promises: "every job, when it is submitted: guarantee times the wait that conservative would promise",
        source: ZOTKIN,
        params: &[
            Param {
                name: "guarantee",
                domain: Domain::Integer(1, 1000),
                default: DefaultValue::Is("1"),
                doc: "a job waits no longer than so many times its first interval in the plan",
            },
            Param { default: DefaultValue::Is("shortest"), ..QUEUE_ORDER },
            WEIGHT,
            DRAW,
            SEED,
        ],
        build: |values| Box::new(Sorted::new(values.order("order"), values.count("guarantee"))),
        promised: |_| Promises::EveryJob,
    },
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
