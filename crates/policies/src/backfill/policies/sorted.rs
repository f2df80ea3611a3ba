//! Sorted backfilling with a guarantee.

use miserly_core::{Machine, Policy};

use super::{QUEUE_ORDER, ZOTKIN};
use crate::backfill::Sorted;
use crate::registry::{Needs, ParamReader, Params, PolicyDescriptor, PolicyError, Promises};
use crate::shared::Order;

/// `sorted`.
pub static SORTED: PolicyDescriptor = PolicyDescriptor {
    name: "sorted",
    title: "sorted backfilling: starts jobs in any order that leaves each its guarantee",
    paper: ZOTKIN,
    promises: "every job, when it is submitted: guarantee times the wait that conservative would promise",
    needs: Needs { only_processors: true, ..Needs::NONE },
    spellings: &[],
    read,
};

#[derive(Debug)]
struct SortedParams {
    order: Order,
    guarantee: u32,
}

fn read(params: &mut ParamReader<'_>) -> Result<Box<dyn Params>, PolicyError> {
    let guarantee = params.integer(
        "guarantee",
        1..=1000,
        1,
        "a job waits at most this many times its first interval in the plan",
    )?;
    let order = params.order("order", "shortest", QUEUE_ORDER)?;
    let order = params.order_settings()?.apply(order);
    Ok(Box::new(SortedParams { order, guarantee: u32::try_from(guarantee).unwrap_or(u32::MAX) }))
}

impl Params for SortedParams {
    fn build(&self, _machine: &Machine) -> Box<dyn Policy> {
        Box::new(Sorted::new(self.order.clone(), self.guarantee))
    }

    fn promises(&self) -> Promises {
        Promises::EveryJob
    }
}
