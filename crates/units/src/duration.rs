//! Durations: from text to ticks.

use jiff::fmt::friendly::SpanParser;
use jiff::{SignedDuration, SpanRelativeTo};
use miserly_core::Span;

use crate::error::{UnitError, nearest};
use crate::print::duration;

/// The longest duration of a job or a setting: 10^10 seconds, as the times of a job log.
pub const LONGEST: Span = Span::from_ticks(10_000_000_000_000_000);

/// The units, and all names that jiff has for them. Months and years have no fixed length.
const UNITS: [(&str, &[&str]); 7] = [
    ("us", &["us", "usec", "usecs", "micro", "micros", "microsecond", "microseconds", "ns"]),
    ("ms", &["ms", "msec", "msecs", "milli", "millis", "millisecond", "milliseconds"]),
    ("s", &["s", "sec", "secs", "second", "seconds"]),
    ("min", &["m", "min", "mins", "minute", "minutes"]),
    ("h", &["h", "hr", "hrs", "hour", "hours"]),
    ("d", &["d", "day", "days"]),
    ("w", &["w", "wk", "wks", "week", "weeks"]),
];

/// Returns the duration that `text` denotes, to the microsecond.
///
/// # Errors
/// Text outside the grammar, a negative duration, a part of a microsecond, and more than a [`Span`] holds.
pub fn parse_duration(text: &str) -> Result<Span, UnitError> {
    let own = || text.to_owned();
    if text.trim_start().starts_with('-') && text.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err(UnitError::Negative { text: own() });
    }
    check_clock(text)?;
    let written = with_units(text).ok_or_else(|| unknown(text))?;
    let exact = friendly(&written).ok_or_else(|| unknown(text))?;
    if exact.subsec_nanos() % 1_000 != 0 {
        return Err(UnitError::TooFine { text: own(), unit: "microseconds" });
    }
    let ticks = i64::try_from(exact.as_micros()).map_err(|_| UnitError::TooLarge { text: own() })?;
    Ok(Span::from_ticks(ticks))
}

/// Returns the duration that `text` denotes, which is from `least` to [`LONGEST`].
///
/// # Errors
/// Those of [`parse_duration`], and a duration outside these limits.
pub fn parse_duration_from(text: &str, least: Span) -> Result<Span, UnitError> {
    let span = parse_duration(text)?;
    if span < least {
        return Err(UnitError::TooShort { text: text.to_owned(), least: duration(least) });
    }
    if span > LONGEST {
        return Err(UnitError::TooLong { text: text.to_owned() });
    }
    Ok(span)
}

/// Returns the whole seconds that `text` denotes, which are from `least` to those of [`LONGEST`].
///
/// # Errors
/// Those of [`parse_duration_from`], and a part of a second.
pub fn parse_seconds(text: &str, least: Span) -> Result<i64, UnitError> {
    let span = parse_duration_from(text, least)?;
    if Span::from_secs(span.secs()) == Some(span) {
        return Ok(span.secs());
    }
    Err(UnitError::TooFine { text: text.to_owned(), unit: "seconds" })
}

/// Returns the text with a unit behind a bare number, and with the days of `D-HH:MM:SS` as days.
fn with_units(text: &str) -> Option<String> {
    let text = text.trim();
    if !text.starts_with(|first: char| first.is_ascii_digit()) || text.ends_with("ago") {
        return None;
    }
    if let Some((days, clock)) = text.split_once('-') {
        return days_and_clock(days, clock);
    }
    let bare = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    Some(if bare { format!("{text}s") } else { text.to_owned() })
}

/// Returns `2d 12:30:00` of `2-12:30`.
fn days_and_clock(days: &str, clock: &str) -> Option<String> {
    let numbers: Vec<&str> = clock.split(':').collect();
    let plain = |number: &&str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let filled = match numbers[..] {
        [hours] => [hours, "00", "00"],
        [hours, minutes] => [hours, minutes, "00"],
        [hours, minutes, seconds] => [hours, minutes, seconds],
        _ => return None,
    };
    let valid = filled.iter().all(plain) && plain(&days);
    valid.then(|| format!("{days}d {}", filled.join(":")))
}

/// Checks that a clock has seconds too, since `1:30` has two meanings.
fn check_clock(text: &str) -> Result<(), UnitError> {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match text.trim().split_once(':') {
        Some((first, second)) if number(first) && number(second) => Err(UnitError::Ambiguous {
            text: text.trim().to_owned(),
            first: first.to_owned(),
            second: second.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Returns the duration of a text in jiff's friendly format; a day has 24 hours.
fn friendly(text: &str) -> Option<SignedDuration> {
    const PARSER: SpanParser = SpanParser::new();
    let span = PARSER.parse_span(text).ok();
    let exact = span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
    // A jiff span has at most 20 000 years; a duration of hours and below has more.
    exact.or_else(|| PARSER.parse_duration(text).ok())
}

/// Returns the text with 1 in place of each number: `1w1d` of `300w20d`.
fn with_ones(text: &str) -> String {
    let mut ones = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '0'..='9' if ones.ends_with('1') => {}
            '0'..='9' => ones.push('1'),
            other => ones.push(other),
        }
    }
    ones
}

/// Returns the reason why a text is no duration: an unknown unit, or a number beyond all limits.
fn unknown(text: &str) -> UnitError {
    if with_units(&with_ones(text)).is_some_and(|small| friendly(&small).is_some()) {
        return UnitError::TooLarge { text: text.to_owned() };
    }
    let words = text.split(|letter: char| !letter.is_alphabetic()).filter(|word| !word.is_empty());
    let begins = text.trim_start().starts_with(|first: char| first.is_ascii_digit());
    match words.into_iter().find(|word| !is_unit(word)).filter(|_| begins) {
        Some(unit) => UnitError::TimeUnit {
            text: text.to_owned(),
            unit: unit.to_owned(),
            nearest: nearest(unit, &UNITS),
        },
        None => UnitError::Duration { text: text.to_owned() },
    }
}

fn is_unit(word: &str) -> bool {
    UNITS.iter().any(|(_, names)| names.contains(&word))
}
