//! Priority-backfill and its presets (Chiang and Vernon §2.2, §2.3).

use crate::backfill::{BackfillRules, ReservationDepth, backfill, backfill_on_hosts};
use crate::registry::values::Values;
use crate::registry::{DefaultValue, Domain, Param, Promises, Registered, RunsOn};
use crate::shared::{Criterion, Order, Priority};

pub(super) const CHIANG: &str =
    "Chiang, Vernon: Production Job Scheduling for Parallel Shared Memory Systems, IPPS 2001";

const DEPTH: Param = Param {
    name: "depth",
    domain: Domain::IntegerOr(
        0,
        1_000_000,
        &[
            ("all", "every job has a reservation, made anew at each pass"),
            ("kept", "every job has a reservation, which never moves later: conservative backfilling"),
        ],
    ),
    default: DefaultValue::Is("1"),
    doc: "how many waiting jobs have a scheduled start; 1 is EASY backfilling",
};

const HOLD: Param = Param {
    name: "hold",
    domain: Domain::Flag,
    default: DefaultValue::Is("false"),
    doc: "a head that has a scheduled start stays the head, whoever sorts before it",
};

const fn weight(name: &'static str, default: &'static str, doc: &'static str) -> Param {
    Param { name, domain: Domain::Number, default: DefaultValue::Is(default), doc }
}

/// Any weights, by default those of Table 3.
pub(in crate::registry) const PRIORITY_BACKFILL: Registered = Registered {
    name: "priority-backfill",
    summary: "backfilling by a weighted sum of wait, expansion factor, size and memory, on hosts",
    promises: "every job with depth=kept; the head of the queue with hold=true; else nothing",
    source: CHIANG,
    params: &[
        weight("w_w", "1", "the weight of the wait, in hours"),
        weight("w_x", "5", "the weight of the estimated expansion factor: (wait + estimate) / estimate"),
        weight("w_p", "0.2", "the weight of the processors"),
        weight("w_m", "0", "the weight of the memory, in memory_per_pe"),
        weight("w_pe", "0", "the weight of the larger of the two"),
        weight(
            "w_bypass",
            "0",
            "the weight of the number of jobs that started ahead of it and sort behind it; depth=kept counts none",
        ),
        weight("memory_per_pe", "358.4", "the memory that counts as one processor, in MB; above 0"),
        DEPTH,
        HOLD,
    ],
    runs_on: RunsOn::Pools,
    heeds_terms: false,
    build: |values, machine| backfill("priority-backfill", machine, priority(values)),
    within: Some(|values, machine| backfill_on_hosts("priority-backfill", machine, priority(values))),
    promised: |values| promised(values, values.flag("hold")),
};

/// Priority-bf of Table 3.
pub(in crate::registry) const PRIORITY_BF: Registered = Registered {
    name: "priority-bf",
    summary: "priority-backfill with the weights of Table 3: wait 1, expansion factor 5, processors 0.2",
    params: &[DEPTH],
    promises: "every job with depth=kept; else nothing",
    build: |values, machine| backfill("priority-bf", machine, priority_bf(values)),
    within: Some(|values, machine| backfill_on_hosts("priority-bf", machine, priority_bf(values))),
    promised: |values| promised(values, false),
    ..PRIORITY_BACKFILL
};

/// LXF&W-bf of Table 3.
pub(in crate::registry) const LXFW_BF: Registered = Registered {
    name: "lxf&w-bf",
    summary: "priority-backfill by the expansion factor, and 0.0167 for each hour of waiting (Table 3)",
    build: |values, machine| backfill("lxf&w-bf", machine, lxfw(values)),
    within: Some(|values, machine| backfill_on_hosts("lxf&w-bf", machine, lxfw(values))),
    ..PRIORITY_BF
};

/// The expansion factor alone.
pub(in crate::registry) const LXF_BACKFILL: Registered = Registered {
    name: "lxf-backfill",
    summary: "priority-backfill by the estimated expansion factor alone",
    build: |values, machine| backfill("lxf-backfill", machine, lxf(values)),
    within: Some(|values, machine| backfill_on_hosts("lxf-backfill", machine, lxf(values))),
    ..PRIORITY_BF
};

/// By arrival.
pub(in crate::registry) const FCFS_BACKFILL: Registered = Registered {
    name: "fcfs-backfill",
    summary: "backfilling in order of arrival, on hosts: EASY with depth=1",
    promises: "every job with depth=kept; the head of the queue with a number; else nothing",
    build: |values, machine| backfill("fcfs-backfill", machine, fcfs(values)),
    within: Some(|values, machine| backfill_on_hosts("fcfs-backfill", machine, fcfs(values))),
    promised: |values| promised(values, true),
    ..PRIORITY_BF
};

/// Shortest first, with a head that is held.
pub(in crate::registry) const SJF_BACKFILL: Registered = Registered {
    name: "sjf-backfill",
    summary: "backfilling with the shortest estimate first; who has a scheduled start keeps it",
    promises: "every job with depth=kept; the job that has the scheduled start with a number; else nothing",
    build: |values, machine| backfill("sjf-backfill", machine, sjf(values)),
    within: Some(|values, machine| backfill_on_hosts("sjf-backfill", machine, sjf(values))),
    promised: |values| promised(values, true),
    ..PRIORITY_BF
};

fn priority(values: &Values) -> BackfillRules {
    rules(values, weighted(values), values.flag("hold"))
}

fn priority_bf(values: &Values) -> BackfillRules {
    rules(values, formula("wait / 3600 + 5 * (wait + estimate) / estimate + 0.2 * procs"), false)
}

fn lxfw(values: &Values) -> BackfillRules {
    rules(values, formula("0.0167 * wait / 3600 + (wait + estimate) / estimate"), false)
}

fn lxf(values: &Values) -> BackfillRules {
    rules(values, formula("(wait + estimate) / estimate"), false)
}

fn fcfs(values: &Values) -> BackfillRules {
    rules(values, Order::ARRIVAL, false)
}

fn sjf(values: &Values) -> BackfillRules {
    rules(values, Order::by(Criterion::Shortest), true)
}

/// Returns the rules with this order and the given depth.
fn rules(values: &Values, order: Order, hold_head: bool) -> BackfillRules {
    let depth = match values.word("depth") {
        "kept" => return BackfillRules::kept(order),
        "all" => ReservationDepth::All,
        _ => ReservationDepth::First(usize::try_from(values.count("depth")).unwrap_or(usize::MAX)),
    };
    BackfillRules { hold_head, ..BackfillRules::recomputed(order, depth) }
}

fn promised(values: &Values, head: bool) -> Promises {
    match values.word("depth") {
        "kept" => Promises::EveryJob,
        "" if head && values.count("depth") > 0 => Promises::Head,
        _ => Promises::Nothing,
    }
}

/// The weighted sum of Table 3's measures.
fn weighted(values: &Values) -> Order {
    let pes = format!("memory / 1024 / {}", values.number("memory_per_pe").max(f64::MIN_POSITIVE));
    let larger = format!("max(procs, {pes})");
    let measures = [
        ("w_w", "wait / 3600"),
        ("w_x", "(wait + estimate) / estimate"),
        ("w_p", "procs"),
        ("w_m", &pes),
        ("w_pe", &larger),
        ("w_bypass", "bypassed"),
    ];
    let terms: Vec<String> = measures
        .into_iter()
        .filter(|(name, _)| values.number(name) > 0.0)
        .map(|(name, measure)| format!("{} * ({measure})", values.number(name)))
        .collect();
    if terms.is_empty() { Order::ARRIVAL } else { formula(&terms.join(" + ")) }
}

/// The jobs with the largest value first.
fn formula(text: &str) -> Order {
    Order::by_formula(Priority::largest(text).expect("made of finite numbers and of names that there are"))
}
