//! The demand for devices of a machine.

use super::ClassSet;

/// The demand for devices of the classes of a [`DeviceTable`](super::DeviceTable).
///
/// All devices of a job are of one class, on one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        /// The memory, in kB.
        memory: u64,
        /// The permitted classes.
        classes: ClassSet,
    },
}

impl DeviceDemand {
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
