//! Immediate service, around any backfill policy (Chiang and Vernon §2.4, §4.3).

use miserly_core::{Machine, Span};

use super::priority::CHIANG;
use crate::backfill::{BackfillRules, ReservationDepth, backfill_on_hosts};
use crate::preempt::{Immediate, Service};
use crate::registry::values::Values;
use crate::registry::{DefaultValue, Domain, Param, Promises, Registered, RunsOn};
use crate::shared::Order;

const POLICY: Param = Param {
    name: "policy",
    domain: Domain::Policy,
    default: DefaultValue::Is("lxf&w-bf"),
    doc: "the backfill policy that it is around",
};

const QUANTUM: Param = Param {
    name: "quantum",
    domain: Domain::Duration { least: 1, none: false },
    default: DefaultValue::Is("1m"),
    doc: "how long the quantum is",
};

const MEMORY: Param = Param {
    name: "memory",
    domain: Domain::Integer(0, u64::MAX),
    default: DefaultValue::Is("1048576"),
    doc: "the most memory that a job has in it, in kB",
};

const KEEP_PROMISES: Param = Param {
    name: "keep_promises",
    domain: Domain::Flag,
    default: DefaultValue::Is("false"),
    doc: "a quantum is given only if no promised start moves, and the policy's promises are told",
};

const KEEP_WORK: Param = Param {
    name: "keep_work",
    domain: Domain::Flag,
    default: DefaultValue::Is("false"),
    doc: "what a job has done in its quantum is not lost if it has to go on later",
};

/// With preemption.
pub(in crate::registry) const IMMEDIATE: Registered = Registered {
    name: "immediate",
    summary: "a quantum at once for every job that cannot start, by preempting others, around a backfill policy",
    promises: "nothing; with keep_promises=true what the policy within promises",
    source: CHIANG,
    params: &[
        POLICY,
        QUANTUM,
        MEMORY,
        Param {
            name: "after",
            domain: Domain::Duration { least: 0, none: false },
            default: DefaultValue::Is("10m"),
            doc: "a job is preempted only if it has run so long without interruption",
        },
        KEEP_PROMISES,
        KEEP_WORK,
    ],
    runs_on: RunsOn::SharedHosts,
    heeds_terms: false,
    build: |values, machine| Box::new(around("immediate", values, machine, Some(values.span("after")))),
    within: None,
    promised,
};

/// Without.
pub(in crate::registry) const SOON: Registered = Registered {
    name: "soon",
    summary: "a quantum for every job as soon as there is room, without preemption, around a backfill policy",
    params: &[POLICY, QUANTUM, MEMORY, KEEP_PROMISES, KEEP_WORK],
    build: |values, machine| Box::new(around("soon", values, machine, None)),
    ..IMMEDIATE
};

fn around(name: &'static str, values: &Values, machine: &Machine, preempt_after: Option<Span>) -> Immediate {
    let service = Service {
        quantum: values.span("quantum"),
        memory: values.integer("memory"),
        preempt_after,
        keep_promises: values.flag("keep_promises"),
        keep_work: values.flag("keep_work"),
    };
    let within = values.policy("policy").and_then(|policy| policy.build_within(machine, values.seed));
    // The domain admits only policies that run within another one.
    let easy = || BackfillRules::recomputed(Order::ARRIVAL, ReservationDepth::First(1));
    let within = within.unwrap_or_else(|| backfill_on_hosts("easy", machine, easy()));
    Immediate::new(name, within, service)
}

fn promised(values: &Values) -> Promises {
    match values.policy("policy") {
        Some(policy) if values.flag("keep_promises") => policy.promises(),
        _ => Promises::Nothing,
    }
}
