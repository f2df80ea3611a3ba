//! The devices that a job holds.

use super::CellId;

/// An amount of a cell of devices that a job holds, or that a plan reserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldDevices {
    /// The cell.
    pub cell: CellId,
    /// The number of devices, or the memory of the device, in kB.
    pub amount: u64,
    /// The devices of the cell by position, one bit each. A plan has no names: 0.
    pub names: u64,
}

impl HeldDevices {
    /// Returns an amount of a cell, without names.
    pub const fn planned(cell: CellId, amount: u64) -> HeldDevices {
        HeldDevices { cell, amount, names: 0 }
    }

    /// Returns the positions of the devices within the cell.
    pub fn positions(self) -> impl Iterator<Item = u32> {
        (0..u64::BITS).filter(move |at| self.names >> at & 1 == 1)
    }
}
