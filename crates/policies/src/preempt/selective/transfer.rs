//! What it costs to suspend a job and to let it run on.

use miserly_core::{Entry, Holds, Kind, Placement, Resources, Span, State, draw};

/// Where the memory of a suspended job goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Nowhere: it keeps it.
    None,
    /// To a disk of so many kB a second, whatever the width of the job.
    Disk {
        /// kB a second; not 0.
        rate: u64,
        /// Whether reading it back takes as long as writing it.
        read: bool,
        /// For the draws of jobs of whose memory nothing is known.
        seed: u64,
    },
}

/// The memory of a job of which nothing is known: from 100 MB to 1 GB, uniformly, in kB (slide "Job Suspension Overhead").
const LEAST: u64 = 100_000;
const MOST: u64 = 1_000_000;

/// The draws of memories, among all draws for a job.
const MEMORY: u64 = 0x6d65_6d6f_7279;

impl Transfer {
    /// How long a job is written out; `None` if it is not.
    pub(super) fn write(self, entry: &Entry) -> Option<Span> {
        let Transfer::Disk { rate, seed, .. } = self else { return None };
        let ticks = memory(entry, seed).saturating_mul(1_000_000) / rate.max(1);
        Some(i64::try_from(ticks).map_or(Span::MAX, Span::from_ticks))
    }

    /// What a running job leaves when it is suspended: its processors, and all that is written out.
    pub(super) fn frees(self, entry: &Entry) -> Resources {
        let held = entry.placement().map(Placement::total).unwrap_or_default();
        match self {
            Transfer::None => Resources::cpus(held.cpus_count()),
            Transfer::Disk { .. } => held,
        }
    }

    /// How long a job is read back before it runs: one that was written out.
    pub(super) fn read(self, entry: &Entry) -> Span {
        let out = matches!(entry.state, State::Suspended { holds: Holds::All { .. } | Holds::Nothing, .. });
        let reads = out && matches!(self, Transfer::Disk { read: true, .. });
        self.write(entry).filter(|_| reads).unwrap_or(Span::ZERO)
    }
}

/// What a job has in memory, kB.
fn memory(entry: &Entry, seed: u64) -> u64 {
    match entry.request.demand.get(Kind::Memory) {
        0 => LEAST + draw(seed, entry.request.number, MEMORY) % (MOST - LEAST + 1),
        known => known,
    }
}
