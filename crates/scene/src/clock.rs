//! Instants and spans as short text.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A second, in milliseconds.
pub const SECOND: i64 = 1000;

/// A minute, in milliseconds.
pub const MINUTE: i64 = 60 * SECOND;
/// An hour, in milliseconds.
pub const HOUR: i64 = 60 * MINUTE;
/// A day, in milliseconds.
pub const DAY: i64 = 24 * HOUR;

/// The most changes of the offset that a chart needs: two in each of some hundred years.
const OFFSETS_MOST: usize = 400;

/// How instants are written.
#[derive(Clone, Debug)]
pub enum Clock {
    /// As wall time in a time zone. Instants are milliseconds since 1970.
    Wall(TimeZone),
    /// As day and time since the start of a log.
    SinceStart,
    /// As wall time where a log was recorded. Instants are milliseconds since the start of the log; each entry is an instant, and the distance of
    /// the local time since 1970 from that instant on.
    Shifted(Vec<(i64, i64)>),
}

impl Clock {
    /// Returns an instant as text, as short as `now` permits: the time alone on the same day, else with the day.
    pub fn instant(&self, at: i64, now: i64) -> String {
        match self {
            Clock::Wall(zone) => wall(zone, at, now),
            Clock::SinceStart => since_start(at, at.div_euclid(DAY) == now.div_euclid(DAY)),
            Clock::Shifted(_) => wall(&TimeZone::UTC, self.local(at), self.local(now)),
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
            Clock::Shifted(_) => Clock::Wall(TimeZone::UTC).exact(self.local(at)),
        }
    }

    /// Returns the day of an instant, with its weekday if it has one.
    pub(crate) fn day(&self, at: i64) -> String {
        match self {
            Clock::Wall(zone) => zoned(zone, at).strftime("%a %Y-%m-%d").to_string(),
            Clock::SinceStart => format!("day {}", at.div_euclid(DAY) + 1),
            Clock::Shifted(_) => Clock::Wall(TimeZone::UTC).day(self.local(at)),
        }
    }

    /// Returns the offset of the clock from UTC at an instant, milliseconds.
    pub fn offset(&self, at: i64) -> i64 {
        match self {
            Clock::Wall(zone) => i64::from(zoned(zone, at).offset().seconds()) * SECOND,
            Clock::SinceStart => 0,
            Clock::Shifted(shifts) => {
                let next = shifts.partition_point(|(from, _)| *from <= at);
                shifts.get(next.saturating_sub(1)).map_or(0, |(_, shift)| *shift)
            }
        }
    }

    /// Returns the parts of a time with one offset each: the begin of each part, and its offset.
    pub fn offsets(&self, from: i64, to: i64) -> Vec<(i64, i64)> {
        let changes: Vec<i64> = match self {
            Clock::Wall(zone) => {
                let following = zone.following(Clock::zoned(zone, from).timestamp());
                let changes = following.map(|change| change.timestamp().as_millisecond());
                changes.take_while(|at| *at < to).take(OFFSETS_MOST).collect()
            }
            Clock::SinceStart => vec![],
            Clock::Shifted(shifts) => {
                shifts.iter().map(|(at, _)| *at).filter(|at| (from + 1..to).contains(at)).collect()
            }
        };
        std::iter::once(from).chain(changes).map(|at| (at, self.offset(at))).collect()
    }

    /// Returns the multiples of a step on the clock, whose offset may change in between.
    pub fn ticks(&self, step: i64, from: i64, to: i64) -> Vec<i64> {
        let offsets = self.offsets(from, to);
        let ends = offsets.iter().skip(1).map(|(at, _)| *at).chain([to]);
        let of_part = |(&(from, offset), to): (&(i64, i64), i64)| {
            let local = from.saturating_add(offset).saturating_add(step - 1);
            let first = local.div_euclid(step).saturating_mul(step).saturating_sub(offset);
            (first..to).step_by(usize::try_from(step).unwrap_or(usize::MAX))
        };
        offsets.iter().zip(ends).flat_map(of_part).collect()
    }

    /// Returns an instant in a time zone.
    pub fn zoned(zone: &TimeZone, at: i64) -> jiff::Zoned {
        zoned(zone, at)
    }

    fn local(&self, at: i64) -> i64 {
        at.saturating_add(self.offset(at))
    }
}

fn zoned(zone: &TimeZone, at: i64) -> jiff::Zoned {
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

/// The steps up to a day. Longer steps are whole days.
const STEPS: [i64; 18] = [
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    3 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
];

/// Returns the shortest usual step of at least this length: from a second on, and from a minute on of whole minutes.
pub fn whole_step(least: i64) -> i64 {
    let usual = STEPS.into_iter().find(|step| *step >= least);
    usual.unwrap_or_else(|| least.saturating_add(DAY - 1) / DAY * DAY)
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
        assert_eq!(
            (utc.day(now), Clock::SinceStart.day(DAY)),
            ("Mon 2026-09-21".to_owned(), "day 2".to_owned())
        );
        assert_eq!(Clock::SinceStart.exact(61 * SECOND), "day 1 00:01:01");
    }

    #[test]
    fn offsets_change_with_the_rules_of_the_zone() {
        let berlin = jiff::tz::db().get("Europe/Berlin");
        // The end of summer time, 2026-10-25 01:00 UTC.
        let change = 1_792_890_000_000;
        let offsets = [(change - DAY, 2 * HOUR), (change, HOUR)];
        if let Ok(zone) = berlin {
            assert_eq!(Clock::Wall(zone).offsets(change - DAY, change + DAY), offsets);
        }
        let shifted = Clock::Shifted(vec![(0, 5 * HOUR), (DAY, 4 * HOUR)]);
        assert_eq!(shifted.offsets(HOUR, 3 * DAY), [(HOUR, 5 * HOUR), (DAY, 4 * HOUR)]);
        assert_eq!(shifted.exact(DAY), "1970-01-02 04:00:00");
        assert_eq!(Clock::SinceStart.offsets(3, 5), [(3, 0)]);
    }

    #[test]
    fn a_span_has_two_units_at_most() {
        let spans = [0, 59, 60, 3600, 3660, 90_000, 864_000].map(|secs| span(secs * SECOND));
        assert_eq!(spans, ["0 s", "59 s", "1 min", "1 h", "1 h 1 min", "1 d 1 h", "10 d"]);
    }
}
