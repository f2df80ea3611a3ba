//! First come, first served: no backfilling.

use miserly_core::{Machine, Policy};

use super::{QUEUE_ORDER, ZOTKIN};
use crate::backfill::Fcfs;
use crate::registry::{Needs, ParamReader, Params, PolicyDescriptor, PolicyError};
use crate::shared::Order;

/// `fcfs`.
pub static FCFS: PolicyDescriptor = PolicyDescriptor {
    name: "fcfs",
    title: "no backfilling: jobs start in queue order; the first job that does not fit blocks the others",
    paper: ZOTKIN,
    promises: "nothing",
    needs: Needs { devices: true, ..Needs::NONE },
    spellings: &[],
    examples: &[],
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
