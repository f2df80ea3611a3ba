//! Sorted backfilling with a guarantee.

use super::{Point, QUEUE_ORDER, ZOTKIN};
use crate::backfill::{BackfillRules, ReservationDepth};
use crate::registry::{Needs, ParamReader, Params, PolicyDescriptor, PolicyError};

/// `sorted`.
pub static SORTED: PolicyDescriptor = PolicyDescriptor {
    name: "sorted",
    title: "sorted backfilling: jobs start in any order that keeps the guarantee of each job",
    paper: ZOTKIN,
    promises: "every job, when it is submitted: guarantee times the wait that conservative would promise; nothing with late=head",
    needs: Needs { devices: true, ..Needs::NONE },
    spellings: &[],
    examples: &[],
    read,
};

fn read(params: &mut ParamReader<'_>) -> Result<Box<dyn Params>, PolicyError> {
    let guarantee = params.integer(
        "guarantee",
        1..=1000,
        1,
        "a job waits at most this many times its first interval in the plan",
    )?;
    let order = params.order("order", "shortest", QUEUE_ORDER)?;
    let order = params.order_settings()?.apply(order);
    let to_head = params.choice(
        "late",
        &[
            (
                "never",
                false,
                "no job starts later: a job starts only if all others can still meet their guarantees",
            ),
            ("head", true, "EASY in this order; a job that waited longer goes to the head of the queue"),
        ],
        "never",
        "a job that would wait longer than its guarantee",
    )?;
    let times = Some(u32::try_from(guarantee).unwrap_or(u32::MAX));
    let rules = if to_head {
        let easy = BackfillRules::recomputed(order, ReservationDepth::First(1));
        BackfillRules { late_after: times, ..easy }
    } else {
        BackfillRules { guarantee: times, ..BackfillRules::kept(order) }
    };
    Ok(Box::new(Point { name: "sorted", rules }))
}
