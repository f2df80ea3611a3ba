//! Best fit.

use miserly_core::{Matrix, Procs, Slot, SlotId};

use super::{Packing, SlotPlacement, with_room};

/// The slot with the least sufficient capacity, then the first, with processors in serial order
/// (§2.1).
///
/// O(slots), and O(r) in the ranges of the slot.
#[derive(Clone, Copy, Debug)]
pub struct BestFit;

/// Returns the slot that fits a job of this size best.
pub(super) fn best(matrix: &Matrix, size: Procs) -> Option<(SlotId, &Slot)> {
    with_room(matrix, size).min_by_key(|(slot, row)| (row.open_count(), *slot))
}

impl Packing for BestFit {
    fn place(&self, matrix: &Matrix, size: Procs) -> Option<SlotPlacement> {
        let (slot, row) = best(matrix, size)?;
        Some(SlotPlacement { slot, pes: row.open().clone().take_lowest(size)? })
    }
}
