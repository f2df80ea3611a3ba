//! Gang time-slicing.

use miserly_core::{Slicing, Span};

use super::backfill::{DRAW, QUEUE_ORDER, SEED, WEIGHT};
use crate::gang::{
    AlternativeOrder, BestFit, Booking, Buddy, BySize, BySlots, FirstFit, Gang, LeastLoaded, Migration,
    Packing, Rules,
};
use crate::registry::values::Values;
use crate::registry::{DefaultValue, Domain, Param, Promises, Registered, RunsOn};

const PACKING: Param = Param {
    name: "packing",
    domain: Domain::Choice(&[
        ("first-fit", "the first slot with room"),
        ("best-fit", "the slot with the least room that is enough"),
        ("left-right-by-size", "as best-fit; small jobs from the left, large ones from the right"),
        ("left-right-by-slots", "as best-fit; some slots from the left, others from the right"),
        (
            "min-max-load",
            "least loaded processors, in the slot where the most loaded of them is loaded least",
        ),
        ("min-average-load", "least loaded processors, in the slot where they are loaded least on average"),
        ("buddy", "groups of processors that are powers of two, the least loaded of them"),
        ("migration", "all jobs are mapped anew, the largest first, whenever one comes or goes"),
    ]),
    default: DefaultValue::Is("buddy"),
    doc: "the slot and the processors of a job",
};

const THRESHOLD: Param = Param {
    name: "threshold",
    domain: Domain::Integer(0, u64::MAX),
    default: DefaultValue::Is("8"),
    doc: "the largest of the small jobs, with left-right-by-size",
};

const LOAD: Param = Param {
    name: "load",
    domain: Domain::Choice(&[
        ("own", "the jobs mapped to it, to its ancestors, and to the more loaded of its children"),
        ("max", "the most that there is on one of its processors"),
    ]),
    default: DefaultValue::Is("own"),
    doc: "the load on a group, with buddy",
};

const UNIFY: Param = Param {
    name: "unify",
    domain: Domain::Flag,
    default: DefaultValue::Is("true"),
    doc: "when a job ends, its slot is united with another one if they have no processor in common; migration does so by itself",
};

const ALTERNATIVE: Param = Param {
    name: "alternative",
    domain: Domain::Flag,
    default: DefaultValue::Is("true"),
    doc: "jobs run in other slots too, where all their processors are free",
};

const ALTERNATIVE_ORDER: Param = Param {
    name: "alternative_order",
    domain: Domain::Choice(&[
        ("arrival", "who came first"),
        ("slot", "whose own slot is lowest, and of one slot who came first"),
    ]),
    default: DefaultValue::Is("arrival"),
    doc: "who goes first where several jobs could run in a slot besides their own",
};

const SLOTS: Param = Param {
    name: "slots",
    domain: Domain::IntegerOr(1, u32::MAX as u64, &[("none", "as many as there have to be")]),
    default: DefaultValue::Is("none"),
    doc: "how many slots there are at most; a job that fits in none waits",
};

const STRICT: Param = Param {
    name: "strict",
    domain: Domain::Flag,
    default: DefaultValue::Is("true"),
    doc: "a job that waits keeps those behind it in the queue waiting",
};

const QUANTUM: Param = Param {
    name: "quantum",
    domain: Domain::Duration { least: 1, none: false },
    default: DefaultValue::Is("10s"),
    doc: "how long a slot works in its turn; in a simulation it matters only with switch",
};

const SWITCH: Param = Param {
    name: "switch",
    domain: Domain::Number,
    default: DefaultValue::Is("0"),
    doc: "seconds that pass before a slot works in its turn, if there are others; a job that runs in all of them goes on",
};

const MIGRATE: Param = Param {
    name: "migrate",
    domain: Domain::Number,
    default: DefaultValue::Is("0"),
    doc: "seconds for which a job does not run that is moved to other processors",
};

/// Slots that take turns.
pub(in crate::registry) const GANG: Registered = Registered {
    name: "gang",
    summary: "gang time-slicing: slots of jobs take turns on the processors, all processors of a job at once",
    promises: "nothing",
    source: "Feitelson: Packing Schemes for Gang Scheduling, JSSPP 1996",
    params: &[
        PACKING,
        THRESHOLD,
        LOAD,
        UNIFY,
        ALTERNATIVE,
        ALTERNATIVE_ORDER,
        SLOTS,
        QUEUE_ORDER,
        STRICT,
        QUANTUM,
        SWITCH,
        MIGRATE,
        WEIGHT,
        DRAW,
        SEED,
    ],
    runs_on: RunsOn::OneHost,
    heeds_terms: false,
    build: |values, _| Box::new(Gang::new(rules(values), packing(values))),
    within: None,
    promised: |_| Promises::Nothing,
};

fn rules(values: &Values) -> Rules {
    let slots = values.count("slots");
    Rules {
        slicing: Slicing {
            most_rows: if slots == 0 { u32::MAX } else { slots },
            quantum: values.span("quantum"),
            switch: seconds(values, "switch"),
        },
        unify: values.flag("unify"),
        alternative: values.flag("alternative").then(|| match values.word("alternative_order") {
            "slot" => AlternativeOrder::Row,
            _ => AlternativeOrder::Arrival,
        }),
        strict: values.flag("strict"),
        migrate: seconds(values, "migrate"),
        order: values.order("order"),
    }
}

fn packing(values: &Values) -> Box<dyn Packing> {
    let booking = if values.word("load") == "max" { Booking::Max } else { Booking::Own };
    match values.word("packing") {
        "first-fit" => Box::new(FirstFit),
        "best-fit" => Box::new(BestFit),
        "left-right-by-size" => Box::new(BySize { threshold: values.integer("threshold").into() }),
        "left-right-by-slots" => Box::new(BySlots),
        "min-max-load" => Box::new(LeastLoaded::by_most()),
        "min-average-load" => Box::new(LeastLoaded::by_mean()),
        "migration" => Box::new(Migration),
        _ => Box::new(Buddy::new(booking)),
    }
}

/// A number of seconds, to the microsecond.
fn seconds(values: &Values, name: &str) -> Span {
    let ticks = values.millionths(name).unwrap_or_default();
    Span::from_ticks(i64::try_from(ticks).unwrap_or(i64::MAX))
}
