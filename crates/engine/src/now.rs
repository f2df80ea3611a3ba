//! Ticks and wall time at one moment.

use jiff::Timestamp;
use jiff::fmt::serde::timestamp::microsecond;
use jiff::tz::TimeZone;
use miserly_core::{Span, Time};
use miserly_saved::ticks;
use serde::{Deserialize, Serialize};

/// One moment, as ticks and as wall time.
///
/// All decisions are made in ticks. Wall time is only displayed, or read from users.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Ticks since the state was created.
    pub ticks: Time,
    /// Wall time.
    pub wall: Timestamp,
}

impl Now {
    /// Returns the wall time of an instant, by the present offset of the two clocks.
    pub fn wall_at(&self, at: Time) -> Timestamp {
        wall_after(self.wall, at - self.ticks)
    }

    /// Returns an instant in local time, to the second, for a message.
    pub fn local_at(&self, at: Time) -> String {
        self.wall_at(at).to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// Returns the instant of a wall time, by the present offset of the two clocks.
    pub fn ticks_at(&self, wall: Timestamp) -> Time {
        self.ticks + wall_span(self.wall, wall)
    }
}

/// Returns the time from one wall time to another, to the microsecond.
pub fn wall_span(from: Timestamp, to: Timestamp) -> Span {
    Span::from_ticks(to.as_microsecond().saturating_sub(from.as_microsecond()))
}

/// Returns the wall time that is later by a span, within the calendar.
pub fn wall_after(wall: Timestamp, span: Span) -> Timestamp {
    let micros = wall.as_microsecond().saturating_add(span.ticks());
    let limit = if micros < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_microsecond(micros).unwrap_or(limit)
}

/// A stored moment from which ticks continue after a restart.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ClockMark {
    /// The identifier of the machine's boot.
    pub boot: String,
    /// The instant of that boot.
    #[serde(with = "ticks")]
    pub offset: Time,
    /// The instant of the mark.
    #[serde(with = "ticks")]
    pub ticks: Time,
    /// Wall time at the moment of the mark.
    #[serde(with = "microsecond::required")]
    pub wall: Timestamp,
}

impl ClockMark {
    /// Returns the mark of a later moment, with the wall time as it is then.
    ///
    /// The wall clock may have been set since. That step is not time that passed.
    #[must_use]
    pub fn at(&self, ticks: Time, now: Now) -> ClockMark {
        ClockMark { ticks, wall: now.wall_at(ticks), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_the_wall_clock_moves_displayed_times_and_no_window() {
        let at = |hour: i64| Timestamp::from_microsecond(hour * 3_600_000_000).unwrap();
        let before = Now { ticks: Time::from_ticks(1000), wall: at(10) };
        let window = before.ticks_at(at(12));
        let after = Now { ticks: Time::from_ticks(1000), wall: at(11) };
        assert_eq!(after.wall_at(window), at(13));
        assert_eq!(before.wall_at(window), at(12));
    }

    #[test]
    fn an_instant_in_a_message_is_local_and_to_the_second() {
        let wall: Timestamp = "2026-11-28T07:33:28.06409Z".parse().unwrap();
        let now = Now { ticks: Time::ZERO, wall };
        let expect = wall.to_zoned(TimeZone::system()).strftime("%F %T").to_string();
        assert_eq!(now.local_at(Time::ZERO), expect);
    }
}
