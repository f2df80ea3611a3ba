//! Gang scheduling (Feitelson 1996) with a boolean for each processor of each slot, and a separate
//! event loop.

mod fraction;

mod packing;

mod buddy;

mod pass;

mod world;

use miserly_core::{EventOrder, Machine, Span, Time};

use self::world::World;
use crate::{NaiveJob, NaiveOrder};

/// The configuration of a gang scheduler.
#[derive(Clone, Copy, Debug)]
pub struct NaiveGang {
    /// The packing scheme, which chooses the slot and the processors.
    pub packing: NaivePacking,
    /// Whether slots without a common processor are unified when a job ends.
    pub unify: bool,
    /// The order in which jobs get alternate slots, if they may run there.
    pub alternative: Option<NaiveFurther>,
    /// Whether a waiting job blocks those behind it.
    pub strict: bool,
    /// The maximum number of slots, if it is limited.
    pub slots: Option<usize>,
    /// The order of the waiting jobs.
    pub order: NaiveOrder,
    /// The quantum of a slot.
    pub quantum: Span,
    /// The cost of a context switch, if there are other slots.
    pub switch: Span,
    /// The pause of a job after a migration.
    pub migrate: Span,
}

/// A packing scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are the paper's names")]
pub enum NaivePacking {
    FirstFit,
    BestFit,
    BySize { threshold: usize },
    BySlots,
    MinMax,
    MinAverage,
    Buddy,
    BuddyByMax,
    Migration,
}

/// The order in which jobs get alternate slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NaiveFurther {
    /// By arrival.
    ByArrival,
    /// By slot, the lowest first, then by arrival.
    ByRow,
}

/// The outcome of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NaiveGangLife {
    /// The start.
    pub start: Time,
    /// The end.
    pub end: Time,
    /// Its own processors at the end.
    pub pes: Vec<bool>,
}

/// Returns the outcome of every job, in the order of the slice, on a machine of one host.
///
/// # Panics
/// If a job never ends.
pub fn gang_schedule(
    machine: &Machine,
    jobs: &[NaiveJob],
    rules: &NaiveGang,
    event_order: EventOrder,
) -> Vec<NaiveGangLife> {
    World::new(machine, jobs, rules).run(event_order)
}
