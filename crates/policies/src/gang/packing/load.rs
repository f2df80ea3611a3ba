//! Packing by the load on processors (§2.3): the number of jobs that use each of them.

use miserly_core::{Matrix, PeSet, Procs};

use super::loads::{Least, Loads};
use super::{Packing, SlotPlacement, with_room};

/// The slot in which the least loaded free processors have the lowest load, then the first slot.
///
/// O(g log g) for each slot, in its free stretches of equal load.
#[derive(Clone, Debug)]
pub struct LeastLoaded {
    loads: Loads,
    of: fn(&Least) -> u64,
}

impl LeastLoaded {
    /// Returns the scheme by the load on the most loaded processor (minimal maximum).
    pub fn by_most() -> LeastLoaded {
        LeastLoaded { loads: Loads::none(), of: |least| u64::from(least.most) }
    }

    /// Returns the scheme by the mean load (minimal average).
    ///
    /// The number of processors is the same in every slot, so their sums give the same order.
    pub fn by_mean() -> LeastLoaded {
        LeastLoaded { loads: Loads::none(), of: |least| least.sum }
    }
}

impl Packing for LeastLoaded {
    fn place(&self, matrix: &Matrix, size: Procs) -> Option<SlotPlacement> {
        let places = with_room(matrix, size)
            .filter_map(|(slot, row)| Some((slot, self.loads.least(row.open(), size)?)));
        let (slot, least) = places.min_by_key(|(slot, least)| ((self.of)(least), *slot))?;
        Some(SlotPlacement { slot, pes: least.pes })
    }

    fn open(&self, matrix: &Matrix, size: Procs) -> Option<PeSet> {
        self.loads.least(matrix.all(), size).map(|least| least.pes)
    }

    fn reset(&mut self, _procs: Procs, _numbers: Procs) {
        self.loads = Loads::none();
    }

    fn came(&mut self, pes: &PeSet) {
        self.loads.add(pes);
    }

    fn left(&mut self, pes: &PeSet) {
        self.loads.remove(pes);
    }
}
