//! Two clocks: ticks, on which every decision is based, and wall time, which is only displayed.
//!
//! Ticks are monotonic. They follow the kernel's boot-time clock, which cannot be set and which
//! runs while the machine sleeps. A stored offset continues them across restarts of the machine.
//! Setting the wall clock therefore moves no window. A start that is two hours away remains two
//! hours away, and is shown at the new time of day.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use miserly_core::Time;
use miserly_engine::{ClockMark, Now};
use miserly_launch::BootTime;
use miserly_launch::fault::ClockSteps;

/// A source of wall time: [`time_of_day`], except in tests of clock changes.
pub type Wall = fn() -> Timestamp;

/// The greatest change of the difference of the clocks that is not followed, microseconds.
const SAME: i64 = 1_000;

/// Returns the time of day of the machine, with the steps of a test.
pub fn time_of_day() -> Timestamp {
    let step = SignedDuration::from_micros(ClockSteps::now().wall);
    Timestamp::now().checked_add(step).unwrap_or(Timestamp::MAX)
}

/// The machine's clocks. Copies share the last difference of the clocks.
#[derive(Clone, Debug)]
pub struct BootClock {
    /// The ticks at the boot of the machine.
    offset: i64,
    wall: Wall,
    /// The wall time less the ticks, as read last, microseconds.
    ///
    /// The two clocks run at the same rate, so the difference changes only if the wall clock is set. A reading of
    /// both is never exact: the thread may lose its processor between them.
    difference: Arc<AtomicI64>,
}

impl BootClock {
    /// Returns the clock of a new state, which starts at 0 now.
    pub fn start(wall: Wall) -> BootClock {
        BootClock::new(-BootTime::now().0, wall)
    }

    fn new(offset: i64, wall: Wall) -> BootClock {
        // No difference is known, so the first reading takes its own.
        BootClock { offset, wall, difference: Arc::new(AtomicI64::new(i64::MAX)) }
    }

    /// Continues from a mark. The elapsed time across a boot of the machine is that of the wall
    /// clock, or none if the wall clock went back.
    pub fn resume(mark: &ClockMark, boot: &str, wall: Wall) -> BootClock {
        if mark.boot == boot {
            let clock = BootClock::new(mark.offset, wall);
            clock.difference.store(mark.wall.saturating_sub(mark.ticks), Ordering::Relaxed);
            return clock;
        }
        let away = wall().as_microsecond().saturating_sub(mark.wall).max(0);
        BootClock::new(mark.ticks.saturating_add(away).saturating_sub(BootTime::now().0), wall)
    }

    /// Returns the mark to store.
    pub fn mark(&self, boot: String) -> ClockMark {
        let now = self.read();
        ClockMark { boot, offset: self.offset, ticks: now.ticks.ticks(), wall: now.wall.as_microsecond() }
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
    ///
    /// Two readings give the same wall time to an instant unless the wall clock was set between them. A user can
    /// thus ask for an instant that an answer has named.
    pub fn read(&self) -> Now {
        let before = self.now().ticks();
        let wall = (self.wall)().as_microsecond();
        let ticks = self.now();
        // The wall time was read between two readings of the ticks.
        let least = wall.saturating_sub(ticks.ticks());
        let most = wall.saturating_sub(before);
        let mut difference = self.difference.load(Ordering::Relaxed);
        if difference < least.saturating_sub(SAME) || difference > most.saturating_add(SAME) {
            difference = i64::midpoint(least, most);
            self.difference.store(difference, Ordering::Relaxed);
        }
        let wall = Timestamp::from_microsecond(ticks.ticks().saturating_add(difference));
        Now { ticks, wall: wall.unwrap_or(Timestamp::MAX) }
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

    #[test]
    fn an_instant_keeps_its_wall_time_until_the_wall_clock_is_set() {
        static STEP: AtomicI64 = AtomicI64::new(0);
        let wall = || {
            let now = Timestamp::now();
            // The thread may lose its processor between two clocks.
            std::thread::sleep(std::time::Duration::from_micros(
                now.as_microsecond().unsigned_abs() % 7 * 100,
            ));
            now + SignedDuration::from_micros(STEP.load(Ordering::Relaxed))
        };
        let clock = BootClock::start(wall);
        let at = Time::from_ticks(60_000_000);
        let named = clock.read().wall_at(at);
        for _ in 0..100 {
            assert_eq!(clock.read().wall_at(at), named);
            assert_eq!(clock.read().ticks_at(named), at);
        }
        let again = BootClock::resume(&clock.mark("one".into()), "one", wall);
        assert_eq!(again.read().wall_at(at), named);
        STEP.store(-5_000_000, Ordering::Relaxed);
        let moved = again.read().wall_at(at).duration_since(named);
        assert!(moved.as_millis().abs_diff(-5_000) < 10, "{moved}");
        assert_eq!(again.read().wall_at(again.read().ticks_at(named)), named);
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
