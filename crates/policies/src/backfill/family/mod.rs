//! The backfill family on hosts with processors, memory and whatever else is counted.
//!
//! Two ways with reservations: [`Anew`] makes those of the first jobs again at every pass, [`Kept`] gives every job one when
//! it comes and only ever moves it earlier. On one host of processors alone they make the schedules of
//! [`Easy`](super::Easy), [`Replanned`](super::Replanned) and [`Conservative`](super::Conservative), which know how to be fast there;
//! property tests hold them to that.

mod anew;

mod kept;

mod news;

mod places;

mod queue;

pub use anew::{Anew, Depth};
pub use kept::Kept;

use miserly_core::{HostId, JobId, Ledger, Placement, Policy, Procs, Resources, Span, Spread, Time};

use crate::shared::{Admits, Trial};

/// A backfill policy that another one can be around: it follows what that one does to its jobs
/// ([`Event::Changed`](miserly_core::Event::Changed)), and shows what it has planned.
pub trait Backfilling: Policy {
    /// What one host has beside the jobs that run and the promised reservations, or beside the jobs alone: to try out whether
    /// something else could be done there.
    fn trial(&self, host: HostId, promised: bool) -> Trial<'_>;
}

/// A place in the future of some hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Whose.
    pub job: JobId,
    /// Its start.
    pub at: Time,
    /// For how long.
    pub span: Span,
    /// Where.
    pub placement: Placement,
}

/// How wide a job can be that starts now, whatever else it asks for: a first look, before a close one.
struct Room {
    procs: Procs,
}

impl Room {
    fn of(ledger: &Ledger) -> Room {
        let free = ledger.free_hosts();
        let procs = match ledger.machine().spread() {
            Spread::One => free.most_cpus(),
            Spread::Any => free.total().cpus_count(),
        };
        Room { procs }
    }
}

impl Admits for Room {
    fn admits(&self, procs: u32, _span: Span) -> bool {
        u64::from(procs) <= self.procs.get()
    }
}

/// What the job has to hold.
fn demand(ledger: &Ledger, job: JobId) -> Resources {
    ledger.machine().demand(ledger.request(job))
}
