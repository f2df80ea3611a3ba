//! Instants as a user types them.

use jiff::civil::Time;
use jiff::tz::TimeZone;
use miserly_api::submit::dated_instant;
use miserly_units::parse_duration;

use miserly_scene::{Clock, DAY};

/// Parses an instant. `shown` is the instant that is shown.
///
/// Forms: `+2h` and `-30min` from the shown instant, `08:00` on its day, and a day with or without a time: `2026-03-01T08:00`,
/// or `day 3 08:00` for a log without a date.
///
/// # Errors
/// Any other text, and instants beyond the calendar: the forms.
pub fn parse_instant(clock: &Clock, text: &str, shown: i64) -> Result<i64, String> {
    let text = text.trim();
    let found = moved(text, shown).or_else(|| match clock {
        Clock::Wall(zone) => wall(zone, text, shown),
        Clock::SinceStart | Clock::Shifted(_) => since_start(text, shown),
    });
    let day = match clock {
        Clock::Wall(_) => "2026-03-01T08:00",
        Clock::SinceStart | Clock::Shifted(_) => "day 3 08:00",
    };
    found.ok_or_else(|| {
        format!("write an instant, such as {day}, 08:00 (of the shown day), or -2h (from the shown instant)")
    })
}
/// Returns the instant that is a length of time before or after another one.
fn moved(text: &str, shown: i64) -> Option<i64> {
    let (sign, length) = match text.split_at_checked(1)? {
        ("+", length) => (1, length),
        ("-", length) => (-1, length),
        _ => return None,
    };
    let millis = parse_duration(length.trim()).ok()?.ticks() / 1000;
    shown.checked_add(sign * millis)
}

fn wall(zone: &TimeZone, text: &str, shown: i64) -> Option<i64> {
    let dated = dated_instant(text, zone);
    if dated.is_some() || text.contains('-') {
        return Some(dated?.as_millisecond());
    }
    let civil = Clock::zoned(zone, shown).date().to_datetime(time(text)?);
    Some(civil.to_zoned(zone.clone()).ok()?.timestamp().as_millisecond())
}

fn since_start(text: &str, shown: i64) -> Option<i64> {
    let Some(rest) = text.strip_prefix("day ") else {
        return shown.div_euclid(DAY).checked_mul(DAY)?.checked_add(millis(time(text)?));
    };
    let (day, clock) = rest.trim().split_once(' ').unwrap_or((rest.trim(), "00:00"));
    let day: i64 = day.parse().ok()?;
    day.checked_sub(1)?.checked_mul(DAY)?.checked_add(millis(time(clock.trim())?))
}

/// Parses the time of a day.
fn time(text: &str) -> Option<Time> {
    // The parser takes the time of a date, too.
    (text.contains(':') && !text.contains('-')).then(|| text.parse().ok())?
}

fn millis(time: Time) -> i64 {
    let secs = 3600 * i64::from(time.hour()) + 60 * i64::from(time.minute()) + i64::from(time.second());
    1000 * secs + i64::from(time.millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks an instant that is typed while 14:13:20 of 2026-09-21, or of the 3rd day, is shown.
    #[track_caller]
    fn check(clock: &Clock, text: &str, expect: Option<&str>) {
        let shown = match clock {
            Clock::Wall(_) => 1_790_000_000_000,
            Clock::SinceStart | Clock::Shifted(_) => 2 * DAY + 51_200_000,
        };
        let found = parse_instant(clock, text, shown).ok().map(|at| clock.exact(at));
        assert_eq!(found.as_deref(), expect, "{text}");
    }

    #[test]
    fn forms_of_a_date() {
        let clock = Clock::Wall(TimeZone::fixed(jiff::tz::offset(2)));
        check(&clock, "2026-03-01T08:00", Some("2026-03-01 08:00:00"));
        check(&clock, "2026-03-01 08:00:30", Some("2026-03-01 08:00:30"));
        check(&clock, "2026-03-01", Some("2026-03-01 00:00:00"));
        check(&clock, "2026-09-21T08:00Z", Some("2026-09-21 10:00:00"));
        check(&clock, "08:00", Some("2026-09-21 08:00:00"));
        check(&clock, "-2h", Some("2026-09-21 14:13:20"));
        check(&clock, " +30min ", Some("2026-09-21 16:43:20"));
        for wrong in ["", "8", "day 1", "2026-13-01", "-", "+", "-é", "25:00", "now"] {
            check(&clock, wrong, None);
        }
    }

    #[test]
    fn forms_of_a_log_without_a_date() {
        let clock = Clock::SinceStart;
        check(&clock, "day 2 08:00", Some("day 2 08:00:00"));
        check(&clock, "day 2", Some("day 2 00:00:00"));
        check(&clock, "08:00:05", Some("day 3 08:00:05"));
        check(&clock, "-1d", Some("day 2 14:13:20"));
        for wrong in ["day", "day x", "day 9223372036854775807", "2026-03-01", "2026-03-01T00:00:30", "é"] {
            check(&clock, wrong, None);
        }
    }
}
