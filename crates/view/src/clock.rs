//! Instants and spans as short text.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A second, in milliseconds.
pub(crate) const SECOND: i64 = 1000;

pub(crate) const MINUTE: i64 = 60 * SECOND;
/// An hour, in milliseconds.
pub(crate) const HOUR: i64 = 60 * MINUTE;
/// A day, in milliseconds.
pub(crate) const DAY: i64 = 24 * HOUR;

/// How instants are written.
#[derive(Clone, Debug)]
pub enum Clock {
    /// As wall time in a time zone. Instants are milliseconds since 1970.
    Wall(TimeZone),
    /// As day and time since the start of a log.
    SinceStart,
}

impl Clock {
    /// Returns an instant as text, as short as `now` permits: the time alone on the same day, else with the day.
    pub fn instant(&self, at: i64, now: i64) -> String {
        match self {
            Clock::Wall(zone) => wall(zone, at, now),
            Clock::SinceStart => since_start(at, at.div_euclid(DAY) == now.div_euclid(DAY)),
        }
    }

    /// Returns the latest instant at which something happens as text, rounded up to the minute: it says no less than was promised.
    pub fn latest(&self, at: i64, now: i64) -> String {
        let part = at.rem_euclid(MINUTE);
        self.instant(if part == 0 { at } else { at.saturating_add(MINUTE - part) }, now)
    }

    /// Returns an instant with its date and seconds.
    pub fn exact(&self, at: i64) -> String {
        match self {
            Clock::Wall(zone) => zoned(zone, at).strftime("%Y-%m-%d %H:%M:%S").to_string(),
            Clock::SinceStart => {
                format!("{}:{:02}", since_start(at, false), at.div_euclid(SECOND).rem_euclid(60))
            }
        }
    }

    /// Returns the offset of the clock from UTC at an instant, milliseconds.
    pub fn offset(&self, at: i64) -> i64 {
        match self {
            Clock::Wall(zone) => i64::from(zoned(zone, at).offset().seconds()) * SECOND,
            Clock::SinceStart => 0,
        }
    }
}

pub(crate) fn zoned(zone: &TimeZone, at: i64) -> jiff::Zoned {
    let outside = if at < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(at).unwrap_or(outside).to_zoned(zone.clone())
}

fn wall(zone: &TimeZone, at: i64, now: i64) -> String {
    let (then, now) = (zoned(zone, at), zoned(zone, now));
    let format = if then.date() == now.date() {
        "%H:%M"
    } else if at.saturating_sub(now.timestamp().as_millisecond()).saturating_abs() < 6 * DAY {
        "%a %H:%M"
    } else {
        "%Y-%m-%d %H:%M"
    };
    then.strftime(format).to_string()
}

fn since_start(at: i64, same_day: bool) -> String {
    let time =
        format!("{:02}:{:02}", at.div_euclid(HOUR).rem_euclid(24), at.div_euclid(MINUTE).rem_euclid(60));
    if same_day { time } else { format!("day {} {time}", at.div_euclid(DAY) + 1) }
}

/// Returns a span as text of at most two units, rounded down.
pub fn span(millis: i64) -> String {
    let secs = millis.max(0) / SECOND;
    let (large, small) = match secs {
        0..60 => return format!("{secs} s"),
        60..3600 => return format!("{} min", secs / 60),
        3600..86_400 => (format!("{} h", secs / 3600), (secs % 3600 / 60, "min")),
        _ => (format!("{} d", secs / 86_400), (secs % 86_400 / 3600, "h")),
    };
    if small.0 == 0 { large } else { format!("{large} {} {}", small.0, small.1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_as_short_as_it_can_be() {
        let utc = Clock::Wall(TimeZone::UTC);
        let now = 1_790_000_000_000;
        assert_eq!(utc.instant(now, now), "14:13");
        assert_eq!(utc.instant(now + DAY, now), "Tue 14:13");
        assert_eq!(utc.instant(now - 30 * DAY, now), "2026-08-22 14:13");
        assert_eq!(utc.latest(now, now), "14:14");
        assert_eq!(utc.latest(now - 20 * SECOND, now), "14:13");
        assert_eq!(utc.exact(now), "2026-09-21 14:13:20");
        assert_eq!(Clock::SinceStart.instant(90 * MINUTE, 0), "01:30");
        assert_eq!(Clock::SinceStart.instant(DAY + 90 * MINUTE, 0), "day 2 01:30");
        assert_eq!(Clock::SinceStart.exact(61 * SECOND), "day 1 00:01:01");
    }

    #[test]
    fn a_span_has_two_units_at_most() {
        let spans = [0, 59, 60, 3600, 3660, 90_000, 864_000].map(|secs| span(secs * SECOND));
        assert_eq!(spans, ["0 s", "59 s", "1 min", "1 h", "1 h 1 min", "1 d 1 h", "10 d"]);
    }
}
