//! First fit.

use miserly_core::{Matrix, Procs};

use super::{Packing, SlotPlacement, with_room};

/// The first slot with sufficient capacity, with processors in serial order (§2.1).
///
/// O(slots), and O(r) in the ranges of the slot.
#[derive(Clone, Copy, Debug)]
pub struct FirstFit;

impl Packing for FirstFit {
    fn place(&self, matrix: &Matrix, size: Procs) -> Option<SlotPlacement> {
        let (slot, row) = with_room(matrix, size).next()?;
        Some(SlotPlacement { slot, pes: row.open().clone().take_lowest(size)? })
    }
}
