//! The demand for devices of a machine.

use super::{ClassSet, DeviceTable};

/// The demand for devices of the classes of a [`DeviceTable`].
///
/// All devices of a job are of one class, on one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceDemand {
    /// Whole devices.
    Whole {
        /// Their number.
        count: u32,
        /// The permitted classes.
        classes: ClassSet,
    },
    /// A share of the memory of one device.
    Share {
        /// The amount.
        amount: ShareAmount,
        /// The permitted classes.
        classes: ClassSet,
    },
}

/// The amount of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShareAmount {
    /// Memory, in kB.
    Memory(u64),
    /// Thousandths of the memory of the device, as logs of shared devices have them.
    Thousandths(u32),
}

impl ShareAmount {
    /// Returns the amount of a device with this memory, in kB, at least 1. Thousandths are rounded down, so that parts whose sum is
    /// a device fit on it.
    pub const fn of(self, capacity: u64) -> u64 {
        match self {
            ShareAmount::Memory(memory) => memory,
            ShareAmount::Thousandths(part) => {
                let amount = capacity.saturating_mul(part as u64) / 1000;
                if amount == 0 { 1 } else { amount }
            }
        }
    }
}

impl DeviceDemand {
    /// Returns the demand in thousandths of a device. Memory counts as its part of the largest permitted device.
    pub fn thousandths(self, table: &DeviceTable) -> u64 {
        match self {
            DeviceDemand::Whole { count, .. } => u64::from(count) * 1000,
            DeviceDemand::Share { amount: ShareAmount::Thousandths(part), .. } => part.into(),
            DeviceDemand::Share { amount: ShareAmount::Memory(memory), classes } => {
                let permitted = table.cells().iter().filter(|cell| cell.shares && classes.has(cell.class));
                let most = permitted.map(|cell| cell.most).max().unwrap_or(0);
                memory.saturating_mul(1000).checked_div(most).unwrap_or(0)
            }
        }
    }

    /// Returns the permitted classes.
    pub const fn classes(self) -> ClassSet {
        match self {
            DeviceDemand::Whole { classes, .. } | DeviceDemand::Share { classes, .. } => classes,
        }
    }

    /// Returns the number of devices on which the job runs.
    pub const fn count(self) -> u32 {
        match self {
            DeviceDemand::Whole { count, .. } => count,
            DeviceDemand::Share { .. } => 1,
        }
    }
}
