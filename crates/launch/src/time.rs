//! A clock that counts suspended time and cannot be set.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::fault::{self, ClockSteps};

const PER_SECOND: i64 = 1_000_000;
const NANOS: i64 = 1_000;

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

    /// Returns the present instant.
    pub fn now() -> BootTime {
        let now = clock_gettime(ClockId::Boottime);
        let now = now.tv_sec.saturating_mul(PER_SECOND).saturating_add(now.tv_nsec / NANOS);
        BootTime(now.saturating_add(ClockSteps::now().boot))
    }

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

    /// Returns the instant to which a timer of the kernel is set, by its own clock. It is never 0, which would disarm the timer.
    ///
    /// It is this instant, except in tests of a clock that steps: a timer then fires early, to be set again.
    pub fn timer(self) -> Timespec {
        if !fault::are_possible() {
            return self.max(BootTime(1)).timespec();
        }
        let at = self.min(BootTime::now().after(fault::LONGEST_WAIT));
        BootTime(at.0.saturating_sub(ClockSteps::now().boot)).max(BootTime(1)).timespec()
    }

    /// Converts to the type of the kernel's timers.
    pub(crate) fn timespec(self) -> Timespec {
        Timespec { tv_sec: self.0.div_euclid(PER_SECOND), tv_nsec: self.0.rem_euclid(PER_SECOND) * NANOS }
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

    #[test]
    fn the_clock_goes_on() {
        let before = BootTime::now();
        std::thread::sleep(Duration::from_millis(2));
        assert!(BootTime::now().since(before) >= Duration::from_millis(2));
    }

    #[test]
    fn timers_get_seconds_and_nanoseconds() {
        assert_eq!(BootTime(3_000_007).timespec(), Timespec { tv_sec: 3, tv_nsec: 7_000 });
    }
}
