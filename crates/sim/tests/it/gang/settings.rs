//! Gang schedulers, as written and as settings of the reference implementation.

use miserly_core::{Machine, Span};
use miserly_oracle::{NaiveFurther, NaiveGang, NaiveOrder, NaivePacking};
use miserly_sim::Job;
use proptest::prelude::*;

use crate::support::{jobs_in, machine};

/// The packing schemes, as parameters.
pub(crate) const PACKINGS: [(&str, NaivePacking); 10] = [
    ("packing=first-fit", NaivePacking::FirstFit),
    ("packing=best-fit", NaivePacking::BestFit),
    ("packing=left-right-by-size, threshold=2", NaivePacking::BySize { threshold: 2 }),
    ("packing=left-right-by-size, threshold=0", NaivePacking::BySize { threshold: 0 }),
    ("packing=left-right-by-slots", NaivePacking::BySlots),
    ("packing=min-max-load", NaivePacking::MinMax),
    ("packing=min-average-load", NaivePacking::MinAverage),
    ("packing=buddy", NaivePacking::Buddy),
    ("packing=buddy, load=max", NaivePacking::BuddyByMax),
    ("packing=migration", NaivePacking::Migration),
];

/// Returns a scheduler, as written and as a setting of the reference implementation.
pub(super) fn scheduler() -> impl Strategy<Value = (String, NaiveGang)> {
    let alternative = prop_oneof![1 => (Just(false), any::<bool>()), 2 => (Just(true), any::<bool>())];
    let flags = (any::<bool>(), alternative, any::<bool>(), any::<bool>());
    let slots = prop_oneof![2 => Just(None), 1 => (1..4usize).prop_map(Some)];
    // In ticks: a switch that costs a share of the turn that is no round number, and a move.
    let costs =
        (prop_oneof![Just(0), Just(250_000), Just(333_333)], prop_oneof![2 => Just(0), 1 => Just(700_000)]);
    (0..PACKINGS.len(), flags, slots, 1..3i64, costs).prop_map(
        |(packing, (unify, (alternative, by_row), strict, shortest), slots, quantum, (switch, migrate))| {
            let (written, packing) = PACKINGS[packing];
            let rows = slots.map_or("none".into(), |slots: usize| slots.to_string());
            let order = if shortest { "shortest" } else { "arrival" };
            let first = if by_row { "slot" } else { "arrival" };
            let seconds = |ticks: i64| format!("0.{ticks:06}");
            let text = format!(
                "gang({written}, unify={unify}, alternative={alternative}, \
                 alternative_order={first}, strict={strict}, slots={rows}, \
                 order={order}, quantum={quantum}s, switch={}, migrate={})",
                seconds(switch),
                seconds(migrate)
            );
            let naive = NaiveGang {
                packing,
                unify,
                alternative: alternative.then_some(if by_row {
                    NaiveFurther::ByRow
                } else {
                    NaiveFurther::ByArrival
                }),
                strict,
                slots,
                order: if shortest { NaiveOrder::SHORTEST } else { NaiveOrder::ARRIVAL },
                quantum: Span::from_ticks(quantum * 1_000_000),
                switch: Span::from_ticks(switch),
                migrate: Span::from_ticks(migrate),
            };
            (text, naive)
        },
    )
}

/// One host, with memory for a few jobs or without any, and jobs on it with times in seconds.
pub(super) fn workload(overruns: bool) -> impl Strategy<Value = (Machine, Vec<Job>)> {
    let memory = prop_oneof![2 => Just(0u64), 1 => 4..12u64];
    (1u64..20, memory).prop_flat_map(move |(procs, memory)| {
        let job = (0i64..40, 0i64..20, 1..=procs, 0i64..25);
        let fix = move |(submit, runtime, procs, estimate): (i64, i64, u64, i64)| {
            (submit, runtime, procs, if overruns { estimate } else { estimate.max(runtime) })
        };
        let machine = if memory == 0 { Machine::plain(procs) } else { machine(&[(procs, memory)]) };
        prop::collection::vec(job.prop_map(fix), 1..24)
            .prop_map(move |quads| (machine.clone(), jobs_in(1_000_000, &quads)))
    })
}
