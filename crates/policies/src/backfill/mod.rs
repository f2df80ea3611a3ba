//! Backfilling (Lifka 1995; Zotkin, Keleher, Perkovic 2000; Chiang, Vernon 2001).
//!
//! Every policy of the family is a value of [`BackfillRules`], run by one engine ([`Backfill`]).
//! The engine is monomorphised over the free resources ([`Availability`]): counts of processors
//! ([`CountPlan`]), or hosts ([`HostPlan`](crate::shared::HostPlan)).
//!
//! | policy | rules |
//! |---|---|
//! | EASY | recomputed reservations, depth 1 |
//! | conservative | kept reservations |
//! | conservative without guarantees | recomputed reservations, all jobs |
//! | selective reservations | recomputed reservations, the jobs above an expansion factor |
//! | sorted with a guarantee | kept reservations, a guarantee |
//! | first-fit windows (Miser) | kept reservations, a horizon |

mod rules;

mod engine;

mod recomputed;

mod kept;

mod guarantee;

mod availability;

mod counts;

mod hosts;

mod changes;

mod reservations;

mod bounds;

mod queue;

mod fcfs;

pub mod policies;

pub use availability::{Availability, FreedCapacity};
pub use counts::{CountPlan, FreedProcs};
pub use engine::{Backfill, Backfilling, backfill, backfill_on_hosts};
pub use fcfs::Fcfs;
pub use reservations::{Reservation, Reservations};
pub use rules::{BackfillRules, ReservationDepth};

use miserly_core::{Context, Entry, JobId, Ledger, Placement, StartReason, Time, Violation};

use self::rules::planned_time;
use crate::shared::{Key, Order, QueueIndex, Waiting};

/// Returns a waiting job as an index in this order keeps it.
pub(crate) fn waiting(order: &Order, now: Time, job: JobId, entry: &Entry) -> Waiting {
    Waiting { key: order.key(now, entry), ..arrival_job(job, entry) }
}

/// Returns a job with its key in the order of arrival.
fn arrival_job(job: JobId, entry: &Entry) -> Waiting {
    Waiting { key: Key::arrival(entry), job, procs: procs(entry), span: planned_time(entry) }
}

/// Sorts the queue again, if its order changes with time.
pub(crate) fn sort_again(queue: &mut QueueIndex, order: &Order, context: &Context<'_>) {
    if order.changes() {
        queue.rekey(|held| order.key(context.now(), context.ledger().entry(held.job)));
    }
}

/// Returns the job's processors.
///
/// The registry admits no machine, and the driver no job, beyond a `u32`.
pub(crate) fn procs(entry: &Entry) -> u32 {
    u32::try_from(entry.request.procs()).unwrap_or(u32::MAX)
}

/// Returns the processors that are free at this moment of the pass.
fn free_now(ledger: &Ledger) -> u32 {
    u32::try_from(ledger.free().cpus_count()).unwrap_or(u32::MAX)
}

/// Starts a job. Records a broken promise if the start is late.
pub(crate) fn start_on(
    context: &mut Context<'_>,
    job: JobId,
    placement: Placement,
    reason: StartReason,
) -> Result<(), Violation> {
    let now = context.now();
    if context.ledger().entry(job).promise.is_some_and(|promise| promise.best < now) {
        context.break_promise(job, now)?;
    }
    context.start(job, placement, reason)
}

/// Returns the reason for which the head of the queue starts: immediate, if it has just arrived.
pub(crate) fn in_turn(context: &Context<'_>, job: JobId) -> StartReason {
    if context.ledger().request(job).submit == context.now() {
        StartReason::Immediate
    } else {
        StartReason::Reserved
    }
}
