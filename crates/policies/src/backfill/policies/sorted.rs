//! Sorted backfilling with a guarantee.

use super::{Point, QUEUE_ORDER, ZOTKIN};
use crate::backfill::BackfillRules;
use crate::registry::{Needs, ParamReader, Params, PolicyDescriptor, PolicyError};

/// `sorted`.
pub static SORTED: PolicyDescriptor = PolicyDescriptor {
    name: "sorted",
    title: "sorted backfilling: jobs start in any order that keeps the guarantee of each job",
    paper: ZOTKIN,
    promises: "every job, when it is submitted: guarantee times the wait that conservative would promise",
    needs: Needs::NONE,
    spellings: &[],
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
    let guarantee = Some(u32::try_from(guarantee).unwrap_or(u32::MAX));
    let rules = BackfillRules { guarantee, ..BackfillRules::kept(order) };
    Ok(Box::new(Point { name: "sorted", rules }))
}
