//! Selective suspension and its relatives (Kettimuthu et al. 2002) on one host, with a separate
//! event loop.

mod processors;

mod life;

mod selective;

mod slices;

mod world;

use miserly_core::{EventOrder, Machine, Span};

use crate::NaiveJob;

pub use self::life::{NaiveLife, NaiveStay};
use self::world::World;

/// The rule of suspension and its cost.
#[derive(Clone, Debug)]
pub struct NaiveSuspension {
    /// The condition under which a job may suspend another.
    pub rule: NaiveRule,
    /// The disk for the memory of suspended jobs, if it is swapped out.
    pub disk: Option<NaiveDisk>,
    /// Whether a suspended job may be resumed on any processors.
    pub migrates: bool,
    /// The preference of a job without a fixed place, if set. Processors that no suspended job
    /// needs come first, then those of the least urgent.
    pub spares: bool,
}

/// The condition under which a job may suspend another.
#[derive(Clone, Debug)]
pub enum NaiveRule {
    /// Its xfactor is larger by a factor. This is also checked at the multiples of a period.
    Xfactor {
        /// The factor in millionths; `None` disables suspension.
        factor: Option<u64>,
        /// The limit beyond which a job is not suspended, if any.
        limit: Option<NaiveLimit>,
        /// The period, or `None` for checks at events only.
        period: Option<Span>,
    },
    /// It has less time left to run.
    Remaining,
    /// It has just arrived, and the victims have run for a slice.
    Slices {
        /// The slice.
        slice: Span,
    },
}

/// The limit of suspension: the xfactor of a job, relative to the mean slowdown of its category.
#[derive(Clone, Copy, Debug)]
pub struct NaiveLimit {
    /// The factor, in millionths.
    pub factor: u64,
    /// The means in millionths, by length and then by width. If not given, they are learned from
    /// the jobs that end.
    pub means: Option<[u64; 16]>,
}

/// A disk.
#[derive(Clone, Copy, Debug)]
pub struct NaiveDisk {
    /// The rate, in kB per second.
    pub rate: u64,
    /// Whether swapping in takes time too.
    pub read: bool,
    /// The seed for the memory of jobs with unknown memory.
    pub seed: u64,
}

/// Returns the outcome of every job, in the order of the slice.
///
/// # Panics
/// If a job never ends.
pub fn suspension_schedule(
    machine: &Machine,
    jobs: &[NaiveJob],
    rules: &NaiveSuspension,
    event_order: EventOrder,
) -> Vec<NaiveLife> {
    World::new(machine, jobs, rules).run(event_order)
}
