//! Selective suspension and its relatives (Kettimuthu et al. 2002) on one host, with an event loop of their own.

mod floor;

mod life;

mod selective;

mod slices;

mod world;

use miserly_core::{EventOrder, Machine, Span};

use crate::NaiveJob;

pub use self::life::{NaiveLife, NaiveStay};
use self::world::World;

/// Who is suspended for whom, and what that costs.
#[derive(Clone, Debug)]
pub struct NaiveSuspension {
    /// Who may suspend whom.
    pub rule: NaiveRule,
    /// Where the memory of suspended jobs is written, if it is.
    pub disk: Option<NaiveDisk>,
    /// A suspended job may run on anywhere.
    pub migrates: bool,
    /// A job that may be anywhere goes first to where nobody suspended has to come back to, then to where the least urgent have.
    pub spares: bool,
}

/// Who may suspend whom.
#[derive(Clone, Debug)]
pub enum NaiveRule {
    /// Whoever has an xfactor that is larger by a factor, at the multiples of a period too.
    Xfactor {
        /// In millionths; nobody suspends anybody without.
        factor: Option<u64>,
        /// Who cannot be suspended any more, if anybody.
        limit: Option<NaiveLimit>,
        /// None: at events only.
        period: Option<Span>,
    },
    /// Whoever has less left to run.
    Remaining,
    /// Whoever has just come, those that have run for so long.
    Slices {
        /// How long.
        slice: Span,
    },
}

/// A job is not suspended any more if its xfactor is beyond so many times the mean slowdown of its category.
#[derive(Clone, Copy, Debug)]
pub struct NaiveLimit {
    /// How many times, in millionths.
    pub factor: u64,
    /// In millionths, by length and then by width; learned from the jobs that end, if not given.
    pub means: Option<[u64; 16]>,
}

/// A disk.
#[derive(Clone, Copy, Debug)]
pub struct NaiveDisk {
    /// kB a second.
    pub rate: u64,
    /// Whether reading back takes time too.
    pub read: bool,
    /// For the memory of jobs of whose memory nothing is known.
    pub seed: u64,
}

/// What becomes of every job, in the order of the slice.
///
/// # Panics
/// If a job never ends.
pub fn suspension_schedule(
    machine: &Machine,
    jobs: &[NaiveJob],
    rules: &NaiveSuspension,
    instants: EventOrder,
) -> Vec<NaiveLife> {
    World::new(machine, jobs, rules).run(instants)
}
