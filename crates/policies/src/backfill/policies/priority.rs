//! Priority-backfill and its presets (Chiang and Vernon §2.2, §2.3).

use super::Point;
use crate::backfill::{BackfillRules, ReservationDepth};
use crate::predict;
use crate::registry::{Needs, ParamReader, Params, PolicyDescriptor, PolicyError};
use crate::shared::{Criterion, Order, Priority};

pub(crate) const CHIANG: &str =
    "Chiang, Vernon: Production Job Scheduling for Parallel Shared Memory Systems, IPPS 2001";

/// `priority-backfill`: any weights, by default those of Table 3.
pub static PRIORITY_BACKFILL: PolicyDescriptor = PolicyDescriptor {
    name: "priority-backfill",
    title: "backfilling by a weighted sum of wait, expansion factor, size and memory, on hosts",
    paper: CHIANG,
    promises: "every job with depth=kept; the head of the queue with hold_head=true; else nothing",
    needs: Needs { calendar: true, devices: true, ..Needs::NONE },
    spellings: &[],
    examples: &[],
    read: |params| {
        let order = weighted(params)?;
        let depth = depth(params)?;
        let hold_head = params.flag(
            "hold_head",
            false,
            "once the first job has a reservation, later jobs cannot displace it",
        )?;
        let rules = rules(order, depth, hold_head);
        let predictions = predict::read(params, false)?;
        Ok(Box::new(Point { name: "priority-backfill", rules: BackfillRules { predictions, ..rules } }))
    },
};

/// `priority-bf` of Table 3.
pub static PRIORITY_BF: PolicyDescriptor = PolicyDescriptor {
    name: "priority-bf",
    title: "priority-backfill with the weights of Table 3: wait 1, expansion factor 5, processors 0.2",
    promises: "every job with depth=kept; else nothing",
    read: |params| {
        let order = formula("wait / 3600 + 5 * (wait + estimate) / estimate + 0.2 * procs");
        preset("priority-bf", order, false, params)
    },
    ..PRIORITY_BACKFILL
};

/// `lxf&w-bf` of Table 3.
pub static LXFW_BF: PolicyDescriptor = PolicyDescriptor {
    name: "lxf&w-bf",
    title: "priority-backfill by the expansion factor, and 0.0167 for each hour of waiting (Table 3)",
    read: |params| {
        let order = formula("0.0167 * wait / 3600 + (wait + estimate) / estimate");
        preset("lxf&w-bf", order, false, params)
    },
    ..PRIORITY_BF
};

/// `lxf-backfill`: the expansion factor alone.
pub static LXF_BACKFILL: PolicyDescriptor = PolicyDescriptor {
    name: "lxf-backfill",
    title: "priority-backfill by the estimated expansion factor alone",
    read: |params| preset("lxf-backfill", formula("(wait + estimate) / estimate"), false, params),
    ..PRIORITY_BF
};

/// `fcfs-backfill`: the order of arrival.
pub static FCFS_BACKFILL: PolicyDescriptor = PolicyDescriptor {
    name: "fcfs-backfill",
    title: "backfilling in arrival order, on hosts; EASY with depth=1",
    promises: "every job with depth=kept; the head of the queue with a number; else nothing",
    read: |params| preset("fcfs-backfill", Order::ARRIVAL, false, params),
    ..PRIORITY_BF
};

/// `sjf-backfill`: shortest first, with a head that is held.
pub static SJF_BACKFILL: PolicyDescriptor = PolicyDescriptor {
    name: "sjf-backfill",
    title: "backfilling with the shortest estimate first; a job with a scheduled start keeps it",
    promises: "every job with depth=kept; the job that has the scheduled start with a number; else nothing",
    read: |params| preset("sjf-backfill", Order::by(Criterion::Shortest), true, params),
    ..PRIORITY_BF
};

/// Returns a policy with a fixed order. Its parameters are the reservation depth and those of predictions.
fn preset(
    name: &'static str,
    order: Order,
    hold_head: bool,
    params: &mut ParamReader<'_>,
) -> Result<Box<dyn Params>, PolicyError> {
    let rules = rules(order, depth(params)?, hold_head);
    let predictions = predict::read(params, false)?;
    Ok(Box::new(Point { name, rules: BackfillRules { predictions, ..rules } }))
}

/// Returns the rules with recomputed reservations of this depth, or else with kept ones.
fn rules(order: Order, depth: Option<ReservationDepth>, hold_head: bool) -> BackfillRules {
    match depth {
        Some(depth) => BackfillRules { hold_head, ..BackfillRules::recomputed(order, depth) },
        None => BackfillRules::kept(order),
    }
}

/// Reads the reservation depth; `None` for kept reservations.
fn depth(params: &mut ParamReader<'_>) -> Result<Option<ReservationDepth>, PolicyError> {
    let words = [
        ("all", Some(ReservationDepth::All), "every job has a reservation, recomputed at each pass"),
        ("kept", None, "every job has a reservation, which never moves later: conservative backfilling"),
    ];
    let number = |jobs| Some(ReservationDepth::First(usize::try_from(jobs).unwrap_or(usize::MAX)));
    params.integer_or(
        "depth",
        (0..=1_000_000, number),
        &words,
        "1",
        "the number of waiting jobs that have a reservation; 1 is EASY backfilling",
    )
}

/// Reads the weighted sum of Table 3's measures.
fn weighted(params: &mut ParamReader<'_>) -> Result<Order, PolicyError> {
    let weights = [
        params.number("w_w", 1.0, "the weight of the wait, in hours")?,
        params.number(
            "w_x",
            5.0,
            "the weight of the estimated expansion factor: (wait + estimate) / estimate",
        )?,
        params.number("w_p", 0.2, "the weight of the processors")?,
        params.number("w_m", 0.0, "the weight of the memory, in memory_per_pe")?,
        params.number("w_pe", 0.0, "the weight of the larger of processors and memory")?,
        params.number(
            "w_bypass",
            0.0,
            "the weight of the number of jobs that sort behind it and started before it; 0 with depth=kept",
        )?,
    ];
    let memory_per_pe =
        params.number("memory_per_pe", 358.4, "the memory that counts as one processor, in MB; above 0")?;
    let pes = format!("memory / 1024 / {}", memory_per_pe.max(f64::MIN_POSITIVE));
    let larger = format!("max(procs, {pes})");
    let measures = ["wait / 3600", "(wait + estimate) / estimate", "procs", &pes, &larger, "bypassed"];
    let terms: Vec<String> = weights
        .into_iter()
        .zip(measures)
        .filter(|(weight, _)| *weight > 0.0)
        .map(|(weight, measure)| format!("{weight} * ({measure})"))
        .collect();
    Ok(if terms.is_empty() { Order::ARRIVAL } else { formula(&terms.join(" + ")) })
}

/// Returns the order that puts the largest value of a formula first.
fn formula(text: &str) -> Order {
    Order::by_formula(Priority::largest(text).expect("made of finite numbers and of names that there are"))
}
