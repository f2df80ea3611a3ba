//! The windows of Miser: a promised start and end for every job, in a pool whose capacity follows a
//! calendar.
//!
//! The windows are kept reservations at the earliest start (first fit). They move earlier after a
//! job has ended. At its creation, no window ends beyond the horizon or outside the constraints of
//! its job.

mod policy;

pub use self::policy::MISER;

use miserly_core::{Machine, Policy, Span};

use crate::backfill::{BackfillRules, backfill};
use crate::shared::Order;

/// Returns first-fit windows (Miser §3.1): on counts, if the machine has only processors.
pub fn first_fit(machine: &Machine, horizon: Span) -> Box<dyn Policy> {
    let rules = BackfillRules { horizon: Some(horizon), ..BackfillRules::kept(Order::ARRIVAL) };
    backfill(MISER.name, machine, rules)
}
