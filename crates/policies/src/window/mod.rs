//! Windows of Miser: for every job a promised start and end, in a pool whose capacity varies by a calendar.
//!
//! The windows are kept reservations: the earliest place (first fit), moved earlier when something has ended.
//! No window lies further ahead than the horizon when it is made, or outside the constraints of its job.

mod policy;

pub use self::policy::MISER;

use miserly_core::{Machine, Span};

use crate::backfill::{Backfill, BackfillRules};
use crate::shared::{HostPlan, Order};

/// Returns first-fit windows (Miser §3.1).
pub fn first_fit(machine: &Machine, horizon: Span) -> Backfill<HostPlan> {
    let rules = BackfillRules { horizon: Some(horizon), ..BackfillRules::kept(Order::ARRIVAL) };
    Backfill::new("miser", machine, rules)
}
