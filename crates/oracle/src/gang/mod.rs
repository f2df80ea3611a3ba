//! Gang time-slicing (Feitelson 1996) with a truth value for each processor of each row, and an event loop of its own.

mod fraction;

mod packing;

mod buddy;

mod pass;

mod world;

use miserly_core::{EventOrder, Machine, Span, Time};

use self::world::World;
use crate::{NaiveJob, NaiveOrder};

/// A gang scheduler.
#[derive(Clone, Copy, Debug)]
pub struct NaiveGang {
    /// Which row and which processors.
    pub packing: NaivePacking,
    /// Rows without a common processor become one when a job ends.
    pub unify: bool,
    /// Who goes first into further rows, if jobs run there.
    pub alternative: Option<NaiveFurther>,
    /// Who waits keeps those behind it waiting.
    pub strict: bool,
    /// How many rows there are at most, if that is limited.
    pub slots: Option<usize>,
    /// The order of those that wait.
    pub order: NaiveOrder,
    /// How long a row works in its turn.
    pub quantum: Span,
    /// What passes before it does, if there are others.
    pub switch: Span,
    /// How long a job rests that is moved.
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

/// Who goes first into further rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NaiveFurther {
    /// Who came first.
    ByArrival,
    /// Whose row is lowest; of one row, who came first.
    ByRow,
}

/// What became of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NaiveGangLife {
    /// When it started.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// Which processors were its own at the end.
    pub pes: Vec<bool>,
}

/// What becomes of every job, in the order of the slice, on a machine of one host.
///
/// # Panics
/// If a job never ends.
pub fn gang_schedule(
    machine: &Machine,
    jobs: &[NaiveJob],
    rules: &NaiveGang,
    instants: EventOrder,
) -> Vec<NaiveGangLife> {
    World::new(machine, jobs, rules).run(instants)
}
