//! The values of a table, and their readings as numbers.

use std::borrow::Cow;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, civil};

use super::field::Unit;
use crate::values;

/// A value of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(&'a [u8]),
    /// Microseconds of the Unix epoch.
    Instant(i64),
    /// A local time, in microseconds as if it were UTC.
    Local(i64),
}

/// Texts that stand for no value in columns of numbers and times.
const NOTHING: [&[u8]; 14] = [
    b"", b"null", b"NULL", b"None", b"NaN", b"nan", b"NaT", b"NA", b"N/A", b"Unknown", b"INVALID", b"(null)",
    b"\\N", b"-",
];

/// Texts that stand for no limit.
const OPEN: [&[u8]; 5] = [b"UNLIMITED", b"INFINITE", b"Partition_Limit", b"infinite", b"unlimited"];

/// The latest time in seconds: in the year 5138. A larger number is not in seconds.
const LATEST: f64 = 1e11;

/// Microseconds of a second.
const MICROS: f64 = 1e6;

impl<'a> Cell<'a> {
    /// Returns the value as a text, or `None` if there is none.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Cell::Null => None,
            Cell::Text(text) => {
                let text = text.trim_ascii();
                let is_none = matches!(text, b"" | b"null" | b"NULL" | b"None" | b"NaN" | b"nan" | b"\\N");
                (!is_none).then(|| {
                    std::str::from_utf8(text).map_or_else(|_| String::from_utf8_lossy(text), Cow::Borrowed)
                })
            }
            Cell::Int(number) => Some(number.to_string().into()),
            Cell::Float(number) if number.is_nan() => None,
            Cell::Float(number) => Some(number.to_string().into()),
            Cell::Instant(micros) | Cell::Local(micros) => Some(micros_text(micros).into()),
        }
    }

    /// Returns the value as a message shows it.
    pub(crate) fn shown(self) -> String {
        match self {
            Cell::Text(text) => String::from_utf8_lossy(text).chars().take(60).collect(),
            cell => cell.text().unwrap_or_default().into_owned(),
        }
    }
}

fn micros_text(micros: i64) -> String {
    Timestamp::from_microsecond(micros).map_or_else(|_| micros.to_string(), |at| at.to_string())
}

/// How the cells of a column become numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reading {
    /// The unit; `None` of a plain number.
    pub(crate) unit: Option<Unit>,
    /// Whether it is an instant.
    pub(crate) is_time: bool,
    /// Values that stand for none.
    pub(crate) none: Vec<String>,
    /// Keys of `key=value` lists, of which the first that is there applies.
    pub(crate) keys: Vec<String>,
    pub(crate) has_decimal_comma: bool,
}

/// A value that is not as its reading expects it.
pub(crate) type Wrong = &'static str;

impl Reading {
    /// A plain number.
    pub(crate) const NUMBER: Reading =
        Reading { unit: None, is_time: false, none: vec![], keys: vec![], has_decimal_comma: false };

    /// Returns the value as a number: of instants and spans in seconds, of memory in kB, NaN for none.
    pub(crate) fn read(&self, cell: Cell<'_>, clock: &mut Clock) -> Result<f64, Wrong> {
        match cell {
            Cell::Null => Ok(f64::NAN),
            Cell::Int(number) if self.none.is_empty() => self.scaled(number as f64),
            Cell::Float(number) if self.none.is_empty() => self.scaled(number),
            Cell::Int(number) => self.unless_none(&number.to_string(), number as f64),
            Cell::Float(number) => self.unless_none(&number.to_string(), number),
            Cell::Instant(micros) => Ok(micros as f64 / MICROS),
            Cell::Local(micros) => clock
                .instant(micros.div_euclid(1_000_000))
                .map(|seconds| seconds as f64 + micros.rem_euclid(1_000_000) as f64 / MICROS),
            Cell::Text(text) => self.read_text(text.trim_ascii(), clock),
        }
    }

    fn unless_none(&self, text: &str, number: f64) -> Result<f64, Wrong> {
        if self.none.iter().any(|none| none == text) { Ok(f64::NAN) } else { self.scaled(number) }
    }

    fn scaled(&self, number: f64) -> Result<f64, Wrong> {
        let Some(unit) = self.unit else { return Ok(number) };
        let scaled = number * unit.scale();
        if !self.is_time || scaled.is_nan() {
            return Ok(scaled);
        }
        // A division by a power of ten is exact where a multiplication is not.
        let seconds = if unit.scale() < 1.0 { number / (1.0 / unit.scale()).round() } else { scaled };
        if (0.0..LATEST).contains(&seconds) { Ok(seconds) } else { Err(self.expected()) }
    }

    fn read_text(&self, text: &[u8], clock: &mut Clock) -> Result<f64, Wrong> {
        if !self.keys.is_empty() {
            return self.read_keys(text);
        }
        let begins_as_number = text.first().is_some_and(u8::is_ascii_digit);
        if !begins_as_number && NOTHING.contains(&text)
            || self.none.iter().any(|none| none.as_bytes() == text)
        {
            return Ok(f64::NAN);
        }
        match self.unit {
            Some(Unit::DateTime) if text.len() > 15 => clock.read(text),
            Some(Unit::Slurm) => slurm_memory(text).ok_or(self.expected()),
            Some(Unit::Clock | Unit::DayClock) if OPEN.contains(&text) => Ok(f64::NAN),
            Some(Unit::Clock | Unit::DayClock) => clock_seconds(text).ok_or(self.expected()),
            unit => match number(text, self.has_decimal_comma) {
                Some(number) => self.scaled(number),
                None if unit.is_some() && !self.is_time && OPEN.contains(&text) => Ok(f64::NAN),
                None => Err(self.expected()),
            },
        }
    }

    /// Reads an amount of a list such as `cpu=4,mem=16G,gres/gpu=2`: that of the first key that is there.
    fn read_keys(&self, text: &[u8]) -> Result<f64, Wrong> {
        let amount = |key: &String| {
            let mut parts = text.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
            parts.find_map(|part| part.strip_prefix(key.as_bytes())?.strip_prefix(b"="))
        };
        let Some(value) = self.keys.iter().find_map(amount) else { return Ok(f64::NAN) };
        let amount = match self.unit {
            Some(Unit::Slurm) => slurm_memory(value),
            unit => number(value, false).map(|number| number * unit.map_or(1.0, Unit::scale)),
        };
        amount.ok_or(self.expected())
    }

    const fn expected(&self) -> Wrong {
        match self.unit {
            Some(Unit::DateTime) => "date and time, timestamp, or seconds of the Unix epoch",
            Some(Unit::Slurm) => "amount of memory such as 16G or 4000Mc",
            Some(Unit::Clock) => "clock h:m:s",
            Some(Unit::DayClock) => "clock d-h:m:s",
            Some(_) if self.is_time => "time in the unit of the column map",
            _ => "number",
        }
    }
}

/// Parses a number.
pub(crate) fn number(text: &[u8], has_decimal_comma: bool) -> Option<f64> {
    if (1..=15).contains(&text.len()) && text.iter().all(u8::is_ascii_digit) {
        let digits = text.iter().fold(0_i64, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        return Some(digits as f64);
    }
    let text = std::str::from_utf8(text).ok()?;
    let text = if has_decimal_comma { Cow::Owned(text.replace(',', ".")) } else { Cow::Borrowed(text) };
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}

fn slurm_memory(text: &[u8]) -> Option<f64> {
    values::memory(std::str::from_utf8(text).ok()?).map(|memory| memory.kilobytes as f64)
}

/// Parses `h:m:s`, `d-h:m:s` and `d:h:m:s`, each with decimals of the second.
fn clock_seconds(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let (days, clock) = text.split_once('-').map_or(("0", text), |(days, clock)| (days, clock));
    let parts: Vec<&str> = clock.split(':').collect();
    let whole = |text: &str| text.parse::<u32>().ok().map(f64::from);
    let (days, parts) = match parts[..] {
        [more, hours, minutes, seconds] if days == "0" => (more, [hours, minutes, seconds]),
        [hours, minutes, seconds] => (days, [hours, minutes, seconds]),
        _ => return None,
    };
    let seconds = parts[2].parse::<f64>().ok().filter(|seconds| (0.0..1e9).contains(seconds))?;
    Some(whole(days)? * 86_400.0 + whole(parts[0])? * 3600.0 + whole(parts[1])? * 60.0 + seconds)
}

/// The readings of local times in a zone.
#[derive(Debug)]
pub(crate) struct Clock {
    zone: Option<TimeZone>,
    /// The offset of days on which the clock does not change, by the day modulo the length.
    offsets: [(i64, i64); 64],
    /// Whether a local time since the last call of `take_repeated` occurs twice.
    repeated: bool,
}

const DAY: i64 = 86_400;

const NO_ZONE: Wrong =
    "time with an offset; give the zone of times without one with --time-zone or zone in the column map";

impl Clock {
    pub(crate) fn new(zone: Option<TimeZone>) -> Clock {
        Clock { zone, offsets: [(i64::MIN, 0); 64], repeated: false }
    }

    /// Returns whether a local time since the last call was one that occurs twice.
    pub(crate) fn take_repeated(&mut self) -> bool {
        std::mem::take(&mut self.repeated)
    }

    /// Parses a date and a time of day, or a number of seconds.
    fn read(&mut self, text: &[u8]) -> Result<f64, Wrong> {
        let Some((local, fraction, rest)) = plain(text) else { return self.read_unusual(text) };
        let seconds = match rest.trim_ascii() {
            b"" => self.instant(local)?,
            rest => match offset(rest) {
                Some(offset) => local - offset,
                None => return self.read_unusual(text),
            },
        };
        Ok(seconds as f64 + fraction)
    }

    /// Parses the notations of the accounting.
    fn read_unusual(&mut self, text: &[u8]) -> Result<f64, Wrong> {
        let wrong = "date and time, timestamp, or seconds of the Unix epoch";
        let text = std::str::from_utf8(text).map_err(|_| wrong)?;
        if let Some(number) = number(text.as_bytes(), false) {
            return if (0.0..LATEST).contains(&number) { Ok(number) } else { Err(wrong) };
        }
        if let Ok(at) = text.parse::<Timestamp>() {
            return Ok(at.as_microsecond() as f64 / MICROS);
        }
        // The parser of local times drops an offset.
        let is_part = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b'T' | b' ' | b'.');
        let local: Option<DateTime> = text.bytes().all(is_part).then(|| text.parse().ok()).flatten();
        let seconds = local.map(|local| civil_seconds(local.date(), local.time()));
        self.instant(seconds.ok_or(wrong)?).map(|seconds| seconds as f64)
    }

    /// Returns the instant of a local time, which is in seconds as if it were UTC.
    fn instant(&mut self, local: i64) -> Result<i64, Wrong> {
        let day = local.div_euclid(DAY);
        let place = usize::try_from(day.rem_euclid(64)).unwrap_or(0);
        let (known, offset) = self.offsets[place];
        if known == day {
            return Ok(local - offset);
        }
        let zone = self.zone.as_ref().ok_or(NO_ZONE)?;
        let at = |local: i64| {
            let civil = Timestamp::from_second(local).ok().map(|at| at.to_zoned(TimeZone::UTC).datetime())?;
            Some(zone.to_ambiguous_timestamp(civil))
        };
        let wrong = "time that exists in the zone";
        let fixed = |local| match at(local).map(|ambiguous| ambiguous.offset()) {
            Some(AmbiguousOffset::Unambiguous { offset }) => Some(i64::from(offset.seconds())),
            _ => None,
        };
        // With the same offset at its begin, at its end and a quarter of a day further, a day has no change.
        let ends = [0, DAY / 4, DAY / 2, DAY - 1].map(|second| fixed(day * DAY + second));
        if let Some(offset) = ends[0]
            && ends.iter().all(|end| *end == Some(offset))
        {
            self.offsets[place] = (day, offset);
            return Ok(local - offset);
        }
        let ambiguous = at(local).ok_or(wrong)?;
        self.repeated |= matches!(ambiguous.offset(), AmbiguousOffset::Fold { .. });
        ambiguous.compatible().map(Timestamp::as_second).map_err(|_| wrong)
    }
}

fn civil_seconds(date: civil::Date, time: civil::Time) -> i64 {
    let days = days(date.year().into(), date.month().into(), date.day().into());
    days * DAY + i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second())
}

/// Parses `2024-03-01 12:00:00.5`: the local time in seconds as if it were UTC, the fraction, and what follows.
fn plain(text: &[u8]) -> Option<(i64, f64, &[u8])> {
    let (head, mut rest) = text.split_at_checked(19)?;
    let two = |at: usize| {
        let (tens, ones) = (head[at].wrapping_sub(b'0'), head[at + 1].wrapping_sub(b'0'));
        (tens < 10 && ones < 10).then(|| i64::from(tens) * 10 + i64::from(ones))
    };
    let signs = [head[4], head[7], head[10], head[13], head[16]];
    if !matches!(signs, [b'-', b'-', b' ' | b'T', b':', b':'] | [b'/', b'/', b' ', b':', b':']) {
        return None;
    }
    let (year, month, day) = (two(0)? * 100 + two(2)?, two(5)?, two(8)?);
    let (hour, minute, second) = (two(11)?, two(14)?, two(17)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut fraction = 0.0;
    if let Some(digits) = rest.strip_prefix(b".") {
        let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        if end == 0 || end > 15 {
            return None;
        }
        let places = i32::try_from(end).ok()?;
        fraction = number(&digits[..end], false)? / 10_f64.powi(places);
        rest = &digits[end..];
    }
    Some((days(year, month, day) * DAY + hour * 3600 + minute * 60 + second, fraction, rest))
}

/// Parses an offset such as `Z` or `+01:00`, in seconds.
fn offset(rest: &[u8]) -> Option<i64> {
    if matches!(rest, b"Z" | b"UTC") {
        return Some(0);
    }
    let (sign, digits) = rest.split_first()?;
    let sign = match sign {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: Vec<i64> =
        digits.iter().filter(|&&byte| byte != b':').map(|&byte| i64::from(byte.wrapping_sub(b'0'))).collect();
    if digits.iter().any(|&digit| digit > 9) {
        return None;
    }
    let (hours, minutes) = match digits[..] {
        [tens, ones] => (tens * 10 + ones, 0),
        [tens, ones, more, last] => (tens * 10 + ones, more * 10 + last),
        _ => return None,
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Returns the days of a date since 1970-01-01 in the Gregorian calendar.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    // Counted in years that begin in March, so that a leap day is the last.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5
        + day
        - 719_469
}
