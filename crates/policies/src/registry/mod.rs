//! Every policy, once: its name, what it promises, its parameters, its paper, and how it is built.

mod chosen;

mod error;

use std::fmt;

use miserly_core::Policy;

pub use chosen::Chosen;
pub use error::PolicyError;

use self::chosen::Values;

use crate::backfill::{Conservative, Easy, Fcfs};
use crate::shared::Order;

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

/// What a parameter may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// An order of the queue.
    Order,
}

impl Domain {
    /// Every value, with its meaning.
    pub fn values(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Domain::Order => Order::ALL.iter().map(|&(_, name, meaning)| (name, meaning)).collect(),
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
}

impl fmt::Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefaultValue::Is(value) => f.write_str(value),
            DefaultValue::SameAs(name) => write!(f, "the same as {name}"),
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
    build: fn(&Values<'_>) -> Box<dyn Policy>,
    promised: fn(&Values<'_>) -> Promises,
}

const ZOTKIN: &str = "Zotkin, Keleher, Perkovic: Attacking the Bottlenecks of Backfilling Schedulers, 2000";

const QUEUE_ORDER: Param = Param {
    name: "order",
    domain: Domain::Order,
    default: DefaultValue::Is("arrival"),
    doc: "the order of the queue",
};

/// Every policy.
pub const POLICIES: &[Registered] = &[
    Registered {
        name: "fcfs",
        summary: "no backfilling: starts the head of the queue while it fits, stops at the first that does not",
        promises: "nothing",
        source: ZOTKIN,
        params: &[QUEUE_ORDER],
        build: |values| Box::new(Fcfs::new(values.order("order"))),
        promised: |_| Promises::Nothing,
    },
    Registered {
        name: "easy",
        summary: "EASY backfilling: jobs may pass the head of the queue if they do not delay it",
        promises: "the head of the queue its shadow time, with order=arrival; else nothing",
        source: ZOTKIN,
        params: &[
            QUEUE_ORDER,
            Param {
                name: "backfill",
                domain: Domain::Order,
                default: DefaultValue::SameAs("order"),
                doc: "the order of the candidates behind the head; backfill=shortest is EASY-SJBF",
            },
        ],
        build: |values| Box::new(Easy::new(values.order("order"), values.order("backfill"))),
        promised: |values| match values.order("order") {
            Order::Arrival => Promises::Head,
            _ => Promises::Nothing,
        },
    },
    Registered {
        name: "conservative",
        summary: "conservative backfilling: every job has a reservation, which never moves later",
        promises: "every job, when it is submitted",
        source: ZOTKIN,
        params: &[Param {
            doc: "the order in which reservations are compressed; new ones are made in order of submission",
            ..QUEUE_ORDER
        }],
        build: |values| Box::new(Conservative::new(values.order("order"))),
        promised: |_| Promises::EveryJob,
    },
];

/// The policy of that name, if there is one.
pub fn find(name: &str) -> Option<&'static Registered> {
    POLICIES.iter().find(|policy| policy.name == name)
}
