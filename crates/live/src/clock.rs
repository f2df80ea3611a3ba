//! Two clocks: ticks, on which every decision is based, and wall time, which is only displayed.
//!
//! Ticks are monotonic. They follow the kernel's boot-time clock, which cannot be set and which
//! runs while the machine sleeps. A stored offset continues them across restarts of the machine.
//! Setting the wall clock therefore moves no window. A start that is two hours away remains two
//! hours away, and is shown at the new time of day.

use jiff::{SignedDuration, Timestamp};
use miserly_core::Time;
use miserly_engine::{ClockMark, Now};
use miserly_launch::BootTime;
use miserly_launch::fault::ClockSteps;

/// A source of wall time: [`time_of_day`], except in tests of clock changes.
pub type Wall = fn() -> Timestamp;

/// Returns the time of day of the machine, with the steps of a test.
pub fn time_of_day() -> Timestamp {
    let step = SignedDuration::from_micros(ClockSteps::now().wall);
    Timestamp::now().checked_add(step).unwrap_or(Timestamp::MAX)
}

/// The machine's clocks.
#[derive(Clone, Copy, Debug)]
pub struct BootClock {
    /// The ticks at the boot of the machine.
    offset: i64,
    wall: Wall,
}

impl BootClock {
    /// Returns the clock of a new state, which starts at 0 now.
    pub fn start(wall: Wall) -> BootClock {
        BootClock { offset: -BootTime::now().0, wall }
    }

    /// Continues from a mark. The elapsed time across a boot of the machine is that of the wall
    /// clock, or none if the wall clock went back.
    pub fn resume(mark: &ClockMark, boot: &str, wall: Wall) -> BootClock {
        if mark.boot == boot {
            return BootClock { offset: mark.offset, wall };
        }
        let away = wall().as_microsecond().saturating_sub(mark.wall).max(0);
        BootClock { offset: mark.ticks.saturating_add(away).saturating_sub(BootTime::now().0), wall }
    }

    /// Returns the mark to store.
    pub fn mark(&self, boot: String) -> ClockMark {
        ClockMark {
            boot,
            offset: self.offset,
            ticks: self.now().ticks(),
            wall: (self.wall)().as_microsecond(),
        }
    }

    /// Returns the same instant on the kernel's clock, microseconds.
    pub fn boot_time(&self, at: Time) -> i64 {
        at.ticks().saturating_sub(self.offset)
    }

    /// Returns an instant of the kernel's clock, given in microseconds, in ticks.
    pub fn ticks(&self, boot_time: i64) -> Time {
        Time::from_ticks(boot_time.saturating_add(self.offset))
    }

    /// Returns ticks since the state was created. They never decrease.
    pub fn now(&self) -> Time {
        self.ticks(BootTime::now().0)
    }

    /// Returns the present moment on both clocks.
    pub fn read(&self) -> Now {
        Now { ticks: self.now(), wall: (self.wall)() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_go_on_over_a_restart_of_the_daemon_and_of_the_machine() {
        let first = BootClock::start(Timestamp::now);
        let mark = first.mark("one".into());
        assert!(first.now() < Time::from_ticks(10_000_000));
        // Wall time has no influence as long as the machine is up.
        let again = BootClock::resume(&mark, "one", || Timestamp::MIN);
        assert!(
            again.now() >= Time::from_ticks(mark.ticks)
                && again.now() < Time::from_ticks(mark.ticks + 10_000_000)
        );
        let an_hour_ago = ClockMark { wall: mark.wall - 3_600_000_000, ..mark.clone() };
        let rebooted = BootClock::resume(&an_hour_ago, "two", Timestamp::now);
        assert!(rebooted.now() >= Time::from_ticks(mark.ticks + 3_600_000_000));
        let set_back = BootClock::resume(&mark, "two", || Timestamp::UNIX_EPOCH);
        assert!(set_back.now() >= Time::from_ticks(mark.ticks));
    }

    /// Checks a wall clock that was set an hour forward before the mark. The machine boots a
    /// quarter of an hour after it.
    #[test]
    fn setting_the_wall_clock_is_no_time_that_passes() {
        const MINUTE: i64 = 60_000_000;
        let wall: Timestamp = "2026-03-01T13:10:00Z".parse().unwrap();
        let mark =
            ClockMark { boot: "one".into(), offset: 0, ticks: 10 * MINUTE, wall: wall.as_microsecond() };
        let clock = BootClock::resume(&mark, "two", || "2026-03-01T13:25:00Z".parse().unwrap());
        let ticks = clock.now().ticks();
        assert!((25 * MINUTE..26 * MINUTE).contains(&ticks), "{ticks}");
    }
}
