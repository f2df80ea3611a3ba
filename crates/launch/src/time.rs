//! Time that goes on while the machine sleeps and that nobody can set.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};

const PER_SECOND: i64 = 1_000_000;
const NANOS: i64 = 1_000;

/// An instant: microseconds of `CLOCK_BOOTTIME`, which begins with the boot, goes on over a suspended machine, and does
/// not follow steps of the wall clock. It means nothing after the next boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootTime(pub i64);

impl BootTime {
    /// Later than everything: never.
    pub const MAX: BootTime = BootTime(i64::MAX);

    /// The instant at which it is called.
    pub fn now() -> BootTime {
        let now = clock_gettime(ClockId::Boottime);
        BootTime(now.tv_sec.saturating_mul(PER_SECOND).saturating_add(now.tv_nsec / NANOS))
    }

    /// The instant that much later; at most [`BootTime::MAX`].
    #[must_use]
    pub fn after(self, length: Duration) -> BootTime {
        BootTime(self.0.saturating_add(ticks(length)))
    }

    /// The instant that much earlier.
    #[must_use]
    pub fn before(self, length: Duration) -> BootTime {
        BootTime(self.0.saturating_sub(ticks(length)))
    }

    /// How long ago `earlier` was; zero if it is later.
    pub fn since(self, earlier: BootTime) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// As the kernel's timers want it.
    pub(crate) fn timespec(self) -> Timespec {
        Timespec { tv_sec: self.0.div_euclid(PER_SECOND), tv_nsec: self.0.rem_euclid(PER_SECOND) * NANOS }
    }
}

/// Whole microseconds of a length.
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
