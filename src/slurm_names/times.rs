//! Slurm's notation of instants.

use jiff::civil::{Date, Time};
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};
use miserly_units::slurm::time_limit;

/// Returns an instant: `now`, `now+1hour`, `now-2days`, `today`, `tomorrow`, `noon`, `midnight`, `16:00`, `MMDDYY`, `MM/DD[/YY]`,
/// `YYYY-MM-DD`, a date with a time in any order, `uts1700000000`.
///
/// A time of day is the next one, or with `past` that of today.
///
/// # Errors
/// Any other text.
pub(super) fn instant(text: &str, now: &Zoned, past: bool) -> Result<Timestamp, String> {
    let lower = text.trim().to_ascii_lowercase();
    let of_epoch = || Timestamp::from_second(lower.strip_prefix("uts")?.parse().ok()?).ok();
    let found = of_epoch().or_else(|| from_now(&lower, now)).or_else(|| of_calendar(&lower, now, past));
    found.ok_or_else(|| format!("Invalid time specification: {text}"))
}

fn from_now(text: &str, now: &Zoned) -> Option<Timestamp> {
    let rest = text.strip_prefix("now")?.trim_start();
    if rest.is_empty() {
        return Some(now.timestamp());
    }
    let (sign, length) = match rest.strip_prefix('+') {
        Some(length) => (1, length),
        None => (-1, rest.strip_prefix('-')?),
    };
    let length = length.trim_start();
    let digits = length.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = length.split_at(digits);
    let scale = match unit.trim() {
        "" | "second" | "seconds" => 1,
        "minute" | "minutes" => 60,
        "hour" | "hours" => 3600,
        "day" | "days" => 86_400,
        "week" | "weeks" => 604_800,
        _ => return None,
    };
    let secs = number.parse::<i64>().ok()?.checked_mul(scale)?;
    now.timestamp().checked_add(SignedDuration::from_secs(sign * secs)).ok()
}

/// A date, a time of day, or both, in any order.
fn of_calendar(text: &str, now: &Zoned, past: bool) -> Option<Timestamp> {
    let zoned = |date: Date, time: Time| {
        Some(date.to_datetime(time).to_zoned(now.time_zone().clone()).ok()?.timestamp())
    };
    // `4:30 pm` is one time.
    let text = text.replace(" am", "am").replace(" pm", "pm");
    let (mut date, mut time) = (None, None);
    for word in text.split_ascii_whitespace() {
        if let Some(found) = time_of_day(word).filter(|_| time.is_none()) {
            time = Some(found);
        } else if let Some(found) = day(word, now).filter(|_| date.is_none()) {
            date = Some(found);
        } else {
            let (own, rest) = date_and_time(word)?;
            if date.is_some() || time.is_some() {
                return None;
            }
            (date, time) = (Some(day(own, now)?), Some(time_of_day(rest)?));
        }
    }
    match (date, time) {
        (Some(date), time) => zoned(date, time.unwrap_or_else(Time::midnight)),
        (None, Some(time)) => {
            let today = zoned(now.date(), time)?;
            let is_over = today <= now.timestamp() && !past;
            if is_over { zoned(now.date().checked_add(1.day()).ok()?, time) } else { Some(today) }
        }
        (None, None) => None,
    }
}

/// Splits `12/01-10:00`, `12/01/26-10:00`, `2026-12-01T10:00` and `2026-12-01-10:00`.
fn date_and_time(word: &str) -> Option<(&str, &str)> {
    if word.contains('/') {
        return word.split_once('-');
    }
    let (date, rest) = word.split_at_checked(10)?;
    Some((date, rest.strip_prefix(['t', '-'])?))
}

fn time_of_day(text: &str) -> Option<Time> {
    match text {
        "midnight" => return Some(Time::midnight()),
        "noon" => return Some(Time::constant(12, 0, 0, 0)),
        "fika" => return Some(Time::constant(15, 0, 0, 0)),
        "teatime" => return Some(Time::constant(16, 0, 0, 0)),
        _ => {}
    }
    let (clock, half) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(clock), _) => (clock, Some(0)),
        (None, Some(clock)) => (clock, Some(12)),
        (None, None) => (text, None),
    };
    let parts: Vec<i8> = clock.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hour, minute, second] = match parts[..] {
        [hour, minute] => [hour, minute, 0],
        [hour, minute, second] => [hour, minute, second],
        _ => return None,
    };
    let hour = half.map_or(hour, |half| hour % 12 + half);
    Time::new(hour, minute, second, 0).ok()
}

fn day(text: &str, now: &Zoned) -> Option<Date> {
    match text {
        "today" => return Some(now.date()),
        "tomorrow" => return now.date().checked_add(1.day()).ok(),
        _ => {}
    }
    let number = |text: &str| text.parse::<i16>().ok();
    if let [year, month, day] = text.split('-').collect::<Vec<_>>()[..] {
        let [month, day] = [number(month)?, number(day)?];
        return Date::new(number(year)?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok();
    }
    let parts: Vec<i16> = if [4, 6].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()) {
        (0..text.len()).step_by(2).map(|at| number(&text[at..at + 2])).collect::<Option<_>>()?
    } else {
        text.split(['/', '.']).map(number).collect::<Option<_>>()?
    };
    let (month, day, year) = match parts[..] {
        [month, day] => (month, day, now.year()),
        [month, day, year @ 0..100] => (month, day, 2000 + year),
        _ => return None,
    };
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// Returns whether a text means no time limit.
pub(super) fn is_unlimited(text: &str) -> bool {
    ["UNLIMITED", "INFINITE", "-1", "0"].contains(&text.to_ascii_uppercase().as_str())
}

/// Returns the seconds of a time limit, where a bare number is minutes.
///
/// # Errors
/// Any other text. A job without a limit is refused, too.
pub(super) fn limit(text: &str) -> Result<u64, String> {
    if is_unlimited(text) {
        return Err(format!(
            "--time={text}: a job has a time limit, because later jobs are promised a start"
        ));
    }
    let span = time_limit(text).ok_or("Invalid --time specification")?;
    u64::try_from(span.ticks() / 1_000_000)
        .ok()
        .filter(|secs| *secs > 0)
        .ok_or_else(|| "Invalid --time specification".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_sign_is_no_time() {
        for text in ["now\u{2013}1hour", "now\u{e9}", "now*2"] {
            assert!(instant(text, &Zoned::now(), true).is_err(), "{text}");
        }
    }

    #[track_caller]
    fn check(text: &str, past: bool, expect: Option<&str>) {
        let now: Zoned = "2026-03-04T10:30:00+00:00[UTC]".parse().unwrap();
        let found = instant(text, &now, past).ok().map(|at| at.to_string());
        assert_eq!(found.as_deref(), expect, "{text}");
    }

    #[test]
    fn instants_in_all_forms_of_slurm() {
        check("now", false, Some("2026-03-04T10:30:00Z"));
        check("now+90", false, Some("2026-03-04T10:31:30Z"));
        check("now+1hour", false, Some("2026-03-04T11:30:00Z"));
        check("now-2days", true, Some("2026-03-02T10:30:00Z"));
        check("16:00", false, Some("2026-03-04T16:00:00Z"));
        check("08:00", false, Some("2026-03-05T08:00:00Z"));
        check("08:00", true, Some("2026-03-04T08:00:00Z"));
        check("4:00pm", false, Some("2026-03-04T16:00:00Z"));
        check("4:30 PM", false, Some("2026-03-04T16:30:00Z"));
        check("NOW - 1day", true, Some("2026-03-03T10:30:00Z"));
        check("now -1week", true, Some("2026-02-25T10:30:00Z"));
        check("midnight", true, Some("2026-03-04T00:00:00Z"));
        check("noon", true, Some("2026-03-04T12:00:00Z"));
        check("noon tomorrow", true, Some("2026-03-05T12:00:00Z"));
        check("10:00 12/01", true, Some("2026-12-01T10:00:00Z"));
        check("1201", true, Some("2026-12-01T00:00:00Z"));
        check("12.01.26", true, Some("2026-12-01T00:00:00Z"));
        check("2026-12-01-10:00", true, Some("2026-12-01T10:00:00Z"));
        check("2026-12-01 10:00", true, Some("2026-12-01T10:00:00Z"));
        check("uts1700000000", true, Some("2023-11-14T22:13:20Z"));
        check("today", true, Some("2026-03-04T00:00:00Z"));
        check("tomorrow", false, Some("2026-03-05T00:00:00Z"));
        check("teatime", false, Some("2026-03-04T16:00:00Z"));
        check("2026-12-01", false, Some("2026-12-01T00:00:00Z"));
        check("2026-12-01T08:00", false, Some("2026-12-01T08:00:00Z"));
        check("2026-12-01T08:00:30", false, Some("2026-12-01T08:00:30Z"));
        check("12/01/26", false, Some("2026-12-01T00:00:00Z"));
        check("12/01/26-08:00", false, Some("2026-12-01T08:00:00Z"));
        check("120126", false, Some("2026-12-01T00:00:00Z"));
        check("12/01", false, Some("2026-12-01T00:00:00Z"));
        for wrong in [
            "",
            "soon",
            "now*2",
            "now+2moons",
            "25:00",
            "13/13/26",
            "2026-13-01",
            "now-1d",
            "now-5min",
            "4pm",
            "16",
            "yesterday",
            "12/01/2026",
            "2026-12-01T10",
            "noon noon",
            "today+1day",
            "utsx",
        ] {
            check(wrong, false, None);
        }
    }

    #[test]
    fn time_limits_in_all_forms_of_slurm() {
        for (text, secs) in [
            ("30", 1800),
            ("90:30", 5430),
            ("1:30:00", 5400),
            ("2-12", 216_000),
            ("2-12:30", 217_800),
            ("2-12:30:15", 217_815),
        ] {
            assert_eq!(limit(text), Ok(secs), "{text}");
        }
        for wrong in ["", "0", "UNLIMITED", "1:2:3:4", "ten"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }
}
