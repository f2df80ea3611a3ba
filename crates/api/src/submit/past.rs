//! The notation of instants of the past.

use jiff::civil::Time;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};
use miserly_units::parse_duration;

use super::instant::{instant, on};

/// Parses an instant of the past, with the words of `sacct`. `now` also gives the time zone.
///
/// Forms: `08:00` (the last one), `2h` or `now-2h` (ago), `today`, `yesterday`, `noon`, and those of [`instant()`], which may be later.
///
/// # Errors
/// Any other text, and instants beyond the calendar.
pub fn past_instant(text: &str, now: &Zoned) -> Result<Timestamp, String> {
    let found = match text {
        "today" | "midnight" => last(Time::midnight(), now),
        "yesterday" => now.yesterday().and_then(|day| day.start_of_day()).ok().map(|day| day.timestamp()),
        "noon" => last(Time::constant(12, 0, 0, 0), now),
        _ if text.contains(':') && !text.contains('-') => text.parse().ok().and_then(|time| last(time, now)),
        _ => ago(text, now).or_else(|| instant(text, now).ok()),
    };
    found.ok_or_else(|| {
        "write an instant of the past, such as 2026-03-01T08:00, 08:00 (the last one), today, yesterday, 2h (ago), or now-2d"
            .to_owned()
    })
}

/// Returns the instant that is a length of time before now: `now-2d`, or `2d`.
fn ago(text: &str, now: &Zoned) -> Option<Timestamp> {
    let with_unit = || text.ends_with(|letter: char| letter.is_ascii_alphabetic()).then_some(text);
    let length = parse_duration(text.strip_prefix("now-").or_else(with_unit)?).ok()?;
    now.timestamp().checked_sub(SignedDuration::from_micros(length.ticks())).ok()
}

/// Returns the last instant at which the clock showed `time`.
fn last(time: Time, now: &Zoned) -> Option<Timestamp> {
    let today = on(now.date(), time, now)?;
    if today <= *now {
        return Some(today.timestamp());
    }
    Some(on(now.date().checked_sub(1.day()).ok()?, time, now)?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past_at(text: &str) -> Result<String, String> {
        let now: Zoned = "2026-11-27T10:00:00+01:00[Europe/Berlin]".parse().unwrap();
        let found = past_instant(text, &now)?;
        Ok(found.to_zoned(now.time_zone().clone()).datetime().to_string())
    }

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(past_at(text).as_deref(), Ok(expect), "{text}");
    }

    #[test]
    fn a_time_of_day_is_the_last_one() {
        check("08:00", "2026-11-27T08:00:00");
        check("08:00:05", "2026-11-27T08:00:05");
        check("10:00", "2026-11-27T10:00:00");
        check("20:00", "2026-11-26T20:00:00");
        check("noon", "2026-11-26T12:00:00");
        check("midnight", "2026-11-27T00:00:00");
        check("today", "2026-11-27T00:00:00");
        check("yesterday", "2026-11-26T00:00:00");
    }

    #[test]
    fn instants_before_now_and_of_the_calendar() {
        check("now", "2026-11-27T10:00:00");
        check("now-90", "2026-11-27T09:58:30");
        check("now-1hour", "2026-11-27T09:00:00");
        check("now-2d", "2026-11-25T10:00:00");
        check("2d", "2026-11-25T10:00:00");
        check("2026-03-01", "2026-03-01T00:00:00");
        check("2026-03-01T08:00", "2026-03-01T08:00:00");
        check("2026-11-01T08:00:00Z", "2026-11-01T09:00:00");
        // The end of a period may be later.
        check("tomorrow", "2026-11-28T00:00:00");
    }

    #[test]
    fn what_is_no_instant_of_the_past() {
        for bad in ["", "now-", "25:00", "2026-02-30", "8", "soon"] {
            let refused = past_at(bad).unwrap_err();
            assert!(refused.contains("yesterday"), "{bad}: {refused}");
        }
    }
}
