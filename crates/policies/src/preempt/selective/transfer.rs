//! The cost of suspending and resuming a job.

use miserly_core::{Entry, Holds, Kind, Placement, Resources, Span, State, draw};

/// The destination of a suspended job's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transfer {
    /// None: the job keeps its memory.
    None,
    /// A disk with this rate, for any width of the job.
    Disk {
        /// The rate in kB per second, not 0.
        rate: u64,
        /// Whether swap-in takes as long as swap-out.
        read: bool,
        /// The seed of the draws for jobs with unknown memory.
        seed: u64,
    },
}

/// The memory of a job with unknown memory: from 100 MB to 1 GB, uniformly, in kB (slide "Job
/// Suspension Overhead").
const LEAST: u64 = 100_000;
const MOST: u64 = 1_000_000;

/// The number of the memory draw among all draws for a job.
const MEMORY: u64 = 0x6d65_6d6f_7279;

impl Transfer {
    /// Returns the time of a job's swap-out, or `None` if it is not swapped out.
    pub(super) fn swap_out_time(self, entry: &Entry) -> Option<Span> {
        let Transfer::Disk { rate, seed, .. } = self else { return None };
        let ticks = memory(entry, seed).saturating_mul(1_000_000) / rate.max(1);
        Some(i64::try_from(ticks).map_or(Span::MAX, Span::from_ticks))
    }

    /// Returns the resources that a running job frees when suspended: its processors, and all that
    /// is swapped out.
    pub(super) fn frees(self, entry: &Entry) -> Resources {
        let held = entry.placement().map(Placement::total).unwrap_or_default();
        match self {
            Transfer::None => Resources::cpus(held.cpus_count()),
            Transfer::Disk { .. } => held,
        }
    }

    /// Returns the swap-in time before a job resumes that was swapped out.
    pub(super) fn swap_in_time(self, entry: &Entry) -> Span {
        let out = matches!(entry.state, State::Suspended { holds: Holds::All { .. } | Holds::Nothing, .. });
        let reads = out && matches!(self, Transfer::Disk { read: true, .. });
        self.swap_out_time(entry).filter(|_| reads).unwrap_or(Span::ZERO)
    }
}

/// Returns the memory of a job, kB.
fn memory(entry: &Entry, seed: u64) -> u64 {
    match entry.request.demand.get(Kind::Memory) {
        0 => LEAST + draw(seed, entry.request.number, MEMORY) % (MOST - LEAST + 1),
        known => known,
    }
}
