//! First fit.

use miserly_core::{Matrix, Procs};

use super::{Packing, Place, with_room};

/// The first slot with sufficient capacity, with processors in serial order (§2.1).
///
/// O(slots), and O(r) in the ranges of the slot.
#[derive(Clone, Copy, Debug)]
pub struct FirstFit;

impl Packing for FirstFit {
    fn place(&self, matrix: &Matrix, size: Procs) -> Option<Place> {
        let (slot, row) = with_room(matrix, size).next()?;
        Some(Place { slot, pes: row.open().clone().take_lowest(size)? })
    }
}
