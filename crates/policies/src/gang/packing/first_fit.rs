//! First fit.

use miserly_core::{Matrix, Procs};

use super::{Packing, Place, with_room};

/// The first row with capacity enough; processors in serial order (§2.1). O(rows), and O(r) in the ranges of the row.
#[derive(Clone, Copy, Debug)]
pub struct FirstFit;

impl Packing for FirstFit {
    fn place(&self, matrix: &Matrix, size: Procs) -> Option<Place> {
        let (slot, row) = with_room(matrix, size).next()?;
        Some(Place { slot, pes: row.open().clone().take_lowest(size)? })
    }
}
