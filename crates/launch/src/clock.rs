//! The clock and the boot of this machine.

use std::fs;
use std::io;

use miserly_attempt::{BootId, BootTime};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::fault::{self, ClockSteps};

const PER_SECOND: i64 = 1_000_000;
const NANOS: i64 = 1_000;

/// The file of the kernel with the identifier of the boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The clock of this machine, for [`BootTime`].
pub trait MachineClock {
    /// Returns the present instant.
    fn now() -> Self;

    /// Returns the instant to which a timer of the kernel is set, by its own clock. It is never 0, which would disarm the timer.
    ///
    /// It is this instant, except in tests of a clock that steps: a timer then fires early, to be set again.
    fn timer(self) -> Timespec;
}

impl MachineClock for BootTime {
    fn now() -> BootTime {
        let now = clock_gettime(ClockId::Boottime);
        let now = now.tv_sec.saturating_mul(PER_SECOND).saturating_add(now.tv_nsec / NANOS);
        BootTime(now.saturating_add(ClockSteps::now().boot))
    }

    fn timer(self) -> Timespec {
        if !fault::are_possible() {
            return timespec(self.max(BootTime(1)));
        }
        let at = self.min(BootTime::now().after(fault::LONGEST_WAIT));
        timespec(BootTime(at.0.saturating_sub(ClockSteps::now().boot)).max(BootTime(1)))
    }
}

/// Converts to the type of the kernel's timers.
pub(crate) fn timespec(at: BootTime) -> Timespec {
    Timespec { tv_sec: at.0.div_euclid(PER_SECOND), tv_nsec: at.0.rem_euclid(PER_SECOND) * NANOS }
}

/// Returns the identifier of the present boot.
///
/// # Errors
/// `/proc` cannot be read.
pub fn current_boot() -> io::Result<BootId> {
    match fault::boot_id() {
        Some(id) => Ok(id.as_str().into()),
        None => Ok(fs::read_to_string(BOOT_ID)?.trim().into()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_clock_goes_on() {
        let before = BootTime::now();
        std::thread::sleep(Duration::from_millis(2));
        assert!(BootTime::now().since(before) >= Duration::from_millis(2));
    }

    #[test]
    fn timers_get_seconds_and_nanoseconds() {
        assert_eq!(timespec(BootTime(3_000_007)), Timespec { tv_sec: 3, tv_nsec: 7_000 });
    }

    #[test]
    fn the_present_boot_has_an_identifier() {
        let boot = current_boot().unwrap();
        assert_eq!((boot.to_string().len(), &boot), (36, &current_boot().unwrap()));
    }
}
