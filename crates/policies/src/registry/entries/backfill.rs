//! The backfill family.

use crate::backfill::{BackfillRules, Fcfs, ReservationDepth, backfill, backfill_on_hosts};
use crate::registry::values::Values;
use crate::registry::{DefaultValue, Domain, Param, Promises, Registered, RunsOn};

const ZOTKIN: &str = "Zotkin, Keleher, Perkovic: Attacking the Bottlenecks of Backfilling Schedulers, 2000";

pub(super) const QUEUE_ORDER: Param = Param {
    name: "order",
    domain: Domain::Order,
    default: DefaultValue::Is("arrival"),
    doc: "the order of the queue",
};

/// What goes for every order of a policy.
pub(super) const WEIGHT: Param = Param {
    name: "weight",
    domain: Domain::Number,
    default: DefaultValue::Is("0"),
    doc: "added to a job's criterion for each second it waits, to 1 / estimate with shortest: bounds overtaking",
};

pub(super) const DRAW: Param = Param {
    name: "draw",
    domain: Domain::Choice(&[("once", "one for each job"), ("pass", "new ones at each pass")]),
    default: DefaultValue::Is("once"),
    doc: "when the numbers of a random order are drawn",
};

pub(super) const SEED: Param = Param {
    name: "seed",
    domain: Domain::Integer(0, u64::MAX),
    default: DefaultValue::SeedOfRun,
    doc: "the seed of these draws",
};

const LIFKA: &str = "Lifka: The ANL/IBM SP Scheduling System, 1995; Mu'alem, Feitelson, TPDS 12(6), 2001; its orders: Zotkin \
    et al., 2000; EASY-SJBF: Tsafrir, Etsion, Feitelson, TPDS 18(6), 2007";

/// No backfilling.
pub(in crate::registry) const FCFS: Registered = Registered {
    name: "fcfs",
    summary: "no backfilling: starts the head of the queue while it fits, stops at the first that does not",
    promises: "nothing",
    source: ZOTKIN,
    params: &[QUEUE_ORDER, WEIGHT, DRAW, SEED],
    runs_on: RunsOn::Hosts,
    heeds_terms: false,
    build: |values, _| Box::new(Fcfs::new(values.order("order"))),
    within: None,
    promised: |_| Promises::Nothing,
};

/// EASY backfilling.
pub(in crate::registry) const EASY: Registered = Registered {
    name: "easy",
    summary: "EASY backfilling: jobs may pass the head of the queue if they do not delay it",
    promises: "the head of the queue its shadow time, with order=arrival or hold=true; else nothing",
    source: LIFKA,
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
    runs_on: RunsOn::Pools,
    heeds_terms: false,
    build: |values, machine| backfill("easy", machine, easy(values)),
    within: Some(|values, machine| backfill_on_hosts("easy", machine, easy(values))),
    promised: |values| {
        if values.flag("hold") || values.order("order").is_arrival() {
            Promises::Head
        } else {
            Promises::Nothing
        }
    },
};

fn easy(values: &Values) -> BackfillRules {
    let (candidate_order, hold_head) = (values.order("backfill"), values.flag("hold"));
    let one = BackfillRules::recomputed(values.order("order"), ReservationDepth::First(1));
    BackfillRules { candidate_order, hold_head, ..one }
}

/// Conservative backfilling, with and without guarantees.
pub(in crate::registry) const CONSERVATIVE: Registered = Registered {
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
    runs_on: RunsOn::Pools,
    heeds_terms: false,
    build: |values, machine| backfill("conservative", machine, conservative(values)),
    within: Some(|values, machine| backfill_on_hosts("conservative", machine, conservative(values))),
    promised: |values| if values.flag("keep") { Promises::EveryJob } else { Promises::Nothing },
};

fn conservative(values: &Values) -> BackfillRules {
    let order = values.order("order");
    if values.flag("keep") {
        BackfillRules::kept(order)
    } else {
        BackfillRules::recomputed(order, ReservationDepth::All)
    }
}

/// Sorting with a guarantee.
pub(in crate::registry) const SORTED: Registered = Registered {
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
    runs_on: RunsOn::Processors,
    heeds_terms: false,
    build: |values, machine| {
        let guarantee = Some(values.count("guarantee"));
        let rules = BackfillRules { guarantee, ..BackfillRules::kept(values.order("order")) };
        backfill("sorted", machine, rules)
    },
    within: None,
    promised: |_| Promises::EveryJob,
};
