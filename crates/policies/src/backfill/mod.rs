//! The backfill family (Zotkin, Keleher, Perkovic 2000).
//!
//! One machine of identical processors, rigid jobs. What tells the members apart is the reservation depth:
//! none ([`Fcfs`]), the head of the queue, made anew at every pass ([`Easy`]), every job, kept
//! ([`Conservative`]) or made anew too ([`Replanned`]).

mod running;

mod fcfs;

mod easy;

mod conservative;

mod replanned;

mod sorted;

pub mod family;

pub mod policies;

pub use conservative::Conservative;
pub use easy::Easy;
pub use fcfs::Fcfs;
pub use replanned::Replanned;
pub use sorted::Sorted;

use miserly_core::{Desk, Entry, JobId, Ledger, Placement, Reason, Time, Violation};

use crate::shared::{Order, QueueIndex, Waiting};

/// A waiting job as an index in this order keeps it.
pub(crate) fn waiting(order: &Order, now: Time, job: JobId, entry: &Entry) -> Waiting {
    Waiting { key: order.key(now, entry), job, procs: procs(entry), span: entry.request.planned() }
}

/// Sorts the queue again, if its order changes with time.
pub(crate) fn sort_again(queue: &mut QueueIndex, order: &Order, desk: &Desk<'_>) {
    if order.changes() {
        queue.rekey(|held| order.key(desk.now(), desk.ledger().entry(held.job)));
    }
}

/// The job's processors; the registry admits no machine, and the driver no job, beyond a `u32`.
pub(crate) fn procs(entry: &Entry) -> u32 {
    u32::try_from(entry.request.procs()).unwrap_or(u32::MAX)
}

/// Free processors as of this moment of the pass.
fn free_now(ledger: &Ledger) -> u32 {
    u32::try_from(ledger.free().cpus_count()).unwrap_or(u32::MAX)
}

/// Starts a job on a plain machine.
fn start(desk: &mut Desk<'_>, job: JobId, reason: Reason) -> Result<(), Violation> {
    let demand = desk.ledger().machine().demand(desk.ledger().request(job));
    start_on(desk, job, Placement::on_plain(demand), reason)
}

/// Starts a job there, and owns up to it if that is later than promised.
pub(crate) fn start_on(
    desk: &mut Desk<'_>,
    job: JobId,
    placement: Placement,
    reason: Reason,
) -> Result<(), Violation> {
    let now = desk.now();
    if desk.ledger().entry(job).promise.is_some_and(|promise| promise.best < now) {
        desk.break_promise(job, now)?;
    }
    desk.start(job, placement, reason)
}

/// Why the head of the queue starts: at once, if it has only just come; else because it was its turn.
pub(crate) fn in_turn(desk: &Desk<'_>, job: JobId) -> Reason {
    if desk.ledger().request(job).submit == desk.now() { Reason::AtOnce } else { Reason::Reserved }
}
