//! The identity of a process, which a bare number is not.

use serde::{Deserialize, Serialize};

use crate::boot::BootId;

/// A process, identified by number, start and boot because the kernel reuses numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Process number.
    pub pid: u32,
    /// Start in clock ticks since the boot.
    pub start_time: u64,
    /// Boot of the machine, with which the process expires.
    pub boot_id: BootId,
}
