//! A clock that counts suspended time and cannot be set.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An instant in microseconds of `CLOCK_BOOTTIME`.
///
/// The clock starts with the boot, includes suspended time and ignores changes of the wall clock.
/// Values are meaningless after a reboot. A record that is stored has a [`StoredInstant`](crate::StoredInstant) instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootTime(pub i64);

impl BootTime {
    /// The latest instant, for "never".
    pub const MAX: BootTime = BootTime(i64::MAX);

    /// Returns the instant `length` later, at most [`BootTime::MAX`].
    #[must_use]
    pub fn after(self, length: Duration) -> BootTime {
        BootTime(self.0.saturating_add(ticks(length)))
    }

    /// Returns the instant `length` earlier.
    #[must_use]
    pub fn before(self, length: Duration) -> BootTime {
        BootTime(self.0.saturating_sub(ticks(length)))
    }

    /// Returns the time since `earlier`, or zero if it is later.
    pub fn since(self, earlier: BootTime) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Returns a duration in whole microseconds.
fn ticks(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate_and_differences_are_never_negative() {
        assert_eq!(BootTime::MAX.after(Duration::from_secs(1)), BootTime::MAX);
        assert_eq!(BootTime(1_500_000).before(Duration::from_millis(500)), BootTime(1_000_000));
        assert_eq!(BootTime(2).since(BootTime(5)), Duration::ZERO);
        assert_eq!(BootTime(5).since(BootTime(2)), Duration::from_micros(3));
    }
}
