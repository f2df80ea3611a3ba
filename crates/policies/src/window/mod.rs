//! The windows of Miser: a promised start and end for every job, in a pool whose capacity follows a
//! calendar.
//!
//! The windows are kept reservations at the earliest start (first fit). They move earlier after a
//! job has ended. At its creation, no window ends beyond the horizon or outside the constraints of
//! its job.

mod policy;

pub use self::policy::MISER;

use miserly_core::{Machine, Policy, Span};

use crate::backfill::{Backfill, BackfillRules, backfill};
use crate::shared::{HostPlan, Order};

/// Returns first-fit windows (Miser §3.1) on a machine of any kind.
pub fn first_fit(machine: &Machine, horizon: Span) -> Backfill<HostPlan> {
    Backfill::new(MISER.name, machine, rules(horizon))
}

/// Returns first-fit windows in the plan that suits the machine: a count, if it has only processors.
fn first_fit_windows(machine: &Machine, horizon: Span) -> Box<dyn Policy> {
    backfill(MISER.name, machine, rules(horizon))
}

fn rules(horizon: Span) -> BackfillRules {
    BackfillRules { horizon: Some(horizon), ..BackfillRules::kept(Order::ARRIVAL) }
}
