//! The notation of instants.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};
use miserly_units::parse_duration;

/// Parses an instant. `now` also gives the time zone.
///
/// Forms: `2026-03-01T08:00`, with seconds or an offset if wanted, `2026-03-01`, `08:00` (the next
/// one), `now+2h` or `+2h`, `midnight`, `noon`, `tomorrow` (its midnight).
///
/// # Errors
/// Any other text, and instants beyond the calendar.
pub fn instant(text: &str, now: &Zoned) -> Result<Timestamp, String> {
    let found = match text {
        "now" => Some(now.timestamp()),
        "noon" => next(Time::constant(12, 0, 0, 0), now),
        "midnight" | "tomorrow" => next(Time::midnight(), now),
        _ => later(text, now).or_else(|| of_calendar(text, now)),
    };
    found.ok_or_else(|| {
        "write an instant, such as 2026-03-01T08:00, 08:00 (the next one), now+2h, or tomorrow".to_owned()
    })
}

/// Returns the instant that is a duration from now.
fn later(text: &str, now: &Zoned) -> Option<Timestamp> {
    let length = text.strip_prefix("now").unwrap_or(text).strip_prefix('+')?;
    let length = SignedDuration::from_micros(parse_duration(length).ok()?.ticks());
    now.timestamp().checked_add(length).ok()
}

/// Parses an instant with a date: `2026-03-01T08:00`, with seconds or an offset if wanted, or `2026-03-01`.
///
/// Returns `None` for any other text, and for instants beyond the calendar.
pub fn dated_instant(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Some(instant);
    }
    let civil = text.parse::<DateTime>().or_else(|_| text.parse::<Date>().map(DateTime::from));
    let civil = civil.ok().filter(|_| text.contains('-'))?;
    Some(civil.to_zoned(zone.clone()).ok()?.timestamp())
}

fn of_calendar(text: &str, now: &Zoned) -> Option<Timestamp> {
    let dated = dated_instant(text, now.time_zone());
    if dated.is_some() || text.contains('-') {
        return dated;
    }
    let clock = text.contains(':').then(|| text.parse::<Time>().ok())?;
    next(clock?, now)
}

/// Returns the next instant at which the clock shows `time`.
fn next(time: Time, now: &Zoned) -> Option<Timestamp> {
    let today = on(now.date(), time, now)?;
    if today > *now {
        return Some(today.timestamp());
    }
    Some(on(now.date().checked_add(1.day()).ok()?, time, now)?.timestamp())
}

/// Returns the instant of a day at which the clock shows `time`, in the time zone of `now`.
pub(super) fn on(date: Date, time: Time, now: &Zoned) -> Option<Zoned> {
    date.to_datetime(time).to_zoned(now.time_zone().clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let now: Zoned = "2026-03-28T20:00:00+01:00[Europe/Berlin]".parse().unwrap();
        let found =
            instant(text, &now).map(|found| found.to_zoned(now.time_zone().clone()).datetime().to_string());
        assert_eq!(found.as_deref(), Ok(expect), "{text}");
    }

    #[test]
    fn instants() {
        check("now", "2026-03-28T20:00:00");
        check("now+90", "2026-03-28T20:01:30");
        check("now+1hour", "2026-03-28T21:00:00");
        check("+1h30m", "2026-03-28T21:30:00");
        check("21:30", "2026-03-28T21:30:00");
        check("08:00:05", "2026-03-29T08:00:05");
        // An instant that is now does not count.
        check("20:00", "2026-03-29T20:00:00");
        check("noon", "2026-03-29T12:00:00");
        check("midnight", "2026-03-29T00:00:00");
        check("tomorrow", "2026-03-29T00:00:00");
        check("2026-04-01", "2026-04-01T00:00:00");
        check("2026-04-01T08:00", "2026-04-01T08:00:00");
        check("2026-04-01 08:00:01", "2026-04-01T08:00:01");
        check("2026-04-01T08:00:00Z", "2026-04-01T10:00:00");
        check("2026-04-01T08:00:00-05:00", "2026-04-01T15:00:00");
        // The clocks are set forward that night: two o'clock is three.
        check("02:30", "2026-03-29T03:30:00");
        check("+6h", "2026-03-29T03:00:00");
    }

    #[test]
    fn what_is_no_instant() {
        let now: Zoned = "2026-03-28T20:00:00+01:00[Europe/Berlin]".parse().unwrap();
        for bad in [
            "",
            "+",
            "now+",
            "soon",
            "25:00",
            "2026-13-01",
            "2026-02-30",
            "8",
            "now-1h",
            "+99999999999999999999",
            "+9999999w",
        ] {
            assert!(instant(bad, &now).is_err(), "{bad:?}");
        }
    }
}
