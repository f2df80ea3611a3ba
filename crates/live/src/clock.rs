//! Two clocks: ticks, by which everything is decided, and wall time, which people read.
//!
//! Ticks count on whatever becomes of wall time: they follow the kernel's boot-time clock, which nobody can set and which runs
//! while the machine sleeps, and go on over a restart of the machine by a stored offset. So a step of the wall clock moves no
//! window; it moves what people read: a start that is two hours away is two hours away before and after, and is shown at the
//! new time of day.

use jiff::Timestamp;
use miserly_core::{Span, Time};
use miserly_launch::BootTime;
use serde::{Deserialize, Serialize};

/// What tells the time.
pub trait Clock: Send {
    /// Ticks since the state was made. Never goes back.
    fn now(&self) -> Time;

    /// Wall time.
    fn wall(&self) -> Timestamp;
}

/// Where wall time is read: [`Timestamp::now`], but for tests, whose wall may step.
pub type Wall = fn() -> Timestamp;

/// The machine's clocks.
#[derive(Clone, Copy, Debug)]
pub struct BootClock {
    /// Ticks at the moment when the machine was started.
    offset: i64,
    wall: Wall,
}

/// What has to be stored for ticks to go on.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Mark {
    /// Which start of the machine it was.
    pub boot: String,
    /// Ticks at that start.
    pub offset: i64,
    /// Ticks when the mark was made.
    pub ticks: i64,
    /// Wall time when the mark was made, microseconds since 1970.
    pub wall: i64,
}

impl Mark {
    /// The mark of a later moment, with the wall as it is then: it may have been set since, and what it was set by is no time that
    /// passed.
    #[must_use]
    pub fn at(&self, ticks: Time, now: Now) -> Mark {
        Mark { ticks: ticks.ticks(), wall: now.wall_at(ticks).as_microsecond(), ..self.clone() }
    }
}

impl BootClock {
    /// The clock of a new state: it begins now.
    pub fn start(wall: Wall) -> BootClock {
        BootClock { offset: -boot_ticks(), wall }
    }

    /// Goes on from a mark. Over a restart of the machine as much time has passed as wall time says, and none, if that went
    /// back.
    pub fn resume(mark: &Mark, boot: &str, wall: Wall) -> BootClock {
        if mark.boot == boot {
            return BootClock { offset: mark.offset, wall };
        }
        let away = wall().as_microsecond().saturating_sub(mark.wall).max(0);
        BootClock { offset: mark.ticks.saturating_add(away).saturating_sub(boot_ticks()), wall }
    }

    /// What to store.
    pub fn mark(&self, boot: String) -> Mark {
        Mark { boot, offset: self.offset, ticks: self.now().ticks(), wall: self.wall().as_microsecond() }
    }

    /// The same instant on the kernel's clock, microseconds.
    pub fn boot_time(&self, at: Time) -> i64 {
        at.ticks().saturating_sub(self.offset)
    }

    /// An instant of the kernel's clock, microseconds, in ticks.
    pub fn ticks(&self, boot_time: i64) -> Time {
        Time::from_ticks(boot_time.saturating_add(self.offset))
    }
}

impl Clock for BootClock {
    fn now(&self) -> Time {
        Time::from_ticks(boot_ticks().saturating_add(self.offset))
    }

    fn wall(&self) -> Timestamp {
        (self.wall)()
    }
}

/// Microseconds on the kernel's boot-time clock.
fn boot_ticks() -> i64 {
    BootTime::now().0
}

/// Ticks and wall time at one moment: all instants of one answer are shown by the same.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Ticks.
    pub ticks: Time,
    /// Wall time.
    pub wall: Timestamp,
}

impl Now {
    /// The clock's now.
    pub fn of(clock: &dyn Clock) -> Now {
        Now { ticks: clock.now(), wall: clock.wall() }
    }

    /// An instant as people read it, as far as the clock of the wall can tell now.
    pub fn wall_at(&self, at: Time) -> Timestamp {
        let micros = self.wall.as_microsecond().saturating_add((at - self.ticks).ticks());
        Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
    }

    /// The instant that people mean.
    pub fn ticks_at(&self, wall: Timestamp) -> Time {
        self.ticks + Span::from_ticks(wall.as_microsecond().saturating_sub(self.wall.as_microsecond()))
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
        // Whatever the wall says, as long as the machine is up.
        let again = BootClock::resume(&mark, "one", || Timestamp::MIN);
        assert!(
            again.now() >= Time::from_ticks(mark.ticks)
                && again.now() < Time::from_ticks(mark.ticks + 10_000_000)
        );
        let an_hour_ago = Mark { wall: mark.wall - 3_600_000_000, ..mark.clone() };
        let rebooted = BootClock::resume(&an_hour_ago, "two", Timestamp::now);
        assert!(rebooted.now() >= Time::from_ticks(mark.ticks + 3_600_000_000));
        let set_back = BootClock::resume(&mark, "two", || Timestamp::UNIX_EPOCH);
        assert!(set_back.now() >= Time::from_ticks(mark.ticks));
    }

    #[test]
    fn a_step_of_the_wall_clock_moves_what_is_read_and_no_window() {
        let at = |hour: i64| Timestamp::from_microsecond(hour * 3_600_000_000).unwrap();
        let before = Now { ticks: Time::from_ticks(1000), wall: at(10) };
        let window = before.ticks_at(at(12));
        let after = Now { ticks: Time::from_ticks(1000), wall: at(11) };
        assert_eq!(after.wall_at(window), at(13));
        assert_eq!(before.wall_at(window), at(12));
    }
}
