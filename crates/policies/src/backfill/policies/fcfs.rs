//! First come, first served: no backfilling.

use miserly_core::{Machine, Policy};

use super::{QUEUE_ORDER, ZOTKIN};
use crate::backfill::Fcfs;
use crate::registry::{Needs, ParamReader, Params, PolicyDescriptor, PolicyError};
use crate::shared::Order;

/// `fcfs`.
pub static FCFS: PolicyDescriptor = PolicyDescriptor {
    name: "fcfs",
    title: "no backfilling: starts the head of the queue while it fits, stops at the first that does not",
    paper: ZOTKIN,
    promises: "nothing",
    needs: Needs::NONE,
    spellings: &[],
    read,
};

#[derive(Debug)]
struct FcfsParams {
    order: Order,
}

fn read(params: &mut ParamReader<'_>) -> Result<Box<dyn Params>, PolicyError> {
    let order = params.order("order", "arrival", QUEUE_ORDER)?;
    Ok(Box::new(FcfsParams { order: params.order_settings()?.apply(order) }))
}

impl Params for FcfsParams {
    fn build(&self, _machine: &Machine) -> Box<dyn Policy> {
        Box::new(Fcfs::new(self.order.clone()))
    }
}
