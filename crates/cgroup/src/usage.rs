//! The resources that the processes of a group have used.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{CgroupError, Group};

/// The resources that the processes of a job have used, as the kernel adds them up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Usage {
    /// Time on processors, of all processes that ever were in the group.
    pub cpu: Duration,
    /// The part of it in user mode.
    pub user: Duration,
    /// The highest use of memory, in bytes, if the kernel counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_peak: Option<u64>,
    /// Bytes read from block devices, if the kernel counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_read: Option<u64>,
    /// Bytes written to block devices, if the kernel counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_written: Option<u64>,
    /// How often the kernel killed the group because memory was exhausted.
    #[serde(default)]
    pub memory_kills: u64,
}

impl Usage {
    pub(crate) fn read(group: &Group) -> Result<Usage, CgroupError> {
        let time = |key| group.value("cpu.stat", key).map(Duration::from_micros);
        // Present only with the io controller.
        let io = group.read("io.stat").ok();
        let bytes = |key| io.as_deref().map(|text| sum_of(text, key));
        Ok(Usage {
            cpu: time("usage_usec ")?,
            user: time("user_usec ")?,
            memory_peak: group.read("memory.peak").ok().and_then(|text| text.parse().ok()),
            io_read: bytes("rbytes="),
            io_written: bytes("wbytes="),
            // Present only with the memory controller.
            memory_kills: group.value("memory.events", "oom_group_kill ").unwrap_or(0),
        })
    }
}

/// Returns the sum of a value over all devices in `io.stat`: lines such as `8:0 rbytes=4096 wbytes=0`.
fn sum_of(text: &str, key: &str) -> u64 {
    let values = text.split_whitespace().filter_map(|word| word.strip_prefix(key)?.parse::<u64>().ok());
    values.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_all_devices() {
        let text = "8:0 rbytes=4096 wbytes=1 rios=1 wios=1 dbytes=9 dios=0\n259:1 rbytes=10 wbytes=20\n7:0\n";
        assert_eq!((sum_of(text, "rbytes="), sum_of(text, "wbytes=")), (4106, 21));
        assert_eq!(sum_of("", "rbytes="), 0);
    }
}
