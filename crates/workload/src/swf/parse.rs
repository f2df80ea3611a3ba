//! Parsing of a line into a record without allocation.

use super::record::{DECIMAL_MAX, Decimal, Field, Record};

/// Maximum number of digits of a field. More digits are damage.
const DIGITS_MAX: usize = 15;

/// Largest time in seconds: over three hundred years, far below the overflow of ticks.
pub(crate) const SECONDS_MAX: i64 = 10_000_000_000;

/// Largest number of processors, as of the largest machine.
const PROCS_MAX: i64 = u32::MAX as i64;

/// An error in a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The line contains bytes that are not text.
    #[error("binary data instead of text; not a log in the Standard Workload Format")]
    NoText,
    /// The line does not have eighteen fields.
    #[error("{found} fields where the format has 18")]
    FieldCount {
        /// Number of fields.
        found: usize,
    },
    /// A field is not a number.
    #[error("field {} ({}) is {text:?}, which is not {}", field.number(), field.name(), wanted(*field))]
    NotANumber {
        /// Field.
        field: Field,
        /// Its text, shortened.
        text: String,
    },
    /// A number is out of range.
    #[error("field {} ({}) is {text}, which is out of range", field.number(), field.name())]
    OutOfRange {
        /// Field.
        field: Field,
        /// Its text, shortened.
        text: String,
    },
}

fn wanted(field: Field) -> &'static str {
    if field == Field::CpuTime { "a number" } else { "a whole number" }
}

/// Parses a job line, without its line end, into `record`.
///
/// # Errors
/// The number of fields is not eighteen, or a field is not a number or out of range.
pub fn parse_line(line: &[u8], record: &mut Record) -> Result<(), LineError> {
    parse_fields(line, record).map_err(|error| if is_text(line) { error } else { LineError::NoText })
}

fn parse_fields(line: &[u8], record: &mut Record) -> Result<(), LineError> {
    let mut at = 0;
    for field in Field::ALL {
        if let Some(value) = plain_number(line, &mut at, field, record) {
            record.fields[field as usize] = value;
            continue;
        }
        let mut rest = &line[at..];
        let Some(token) = next_token(&mut rest) else {
            return Err(LineError::FieldCount { found: field as usize });
        };
        record.fields[field as usize] = parse_field(field, token, record)?;
        at = line.len() - rest.len();
    }
    match count_tokens(&line[at..]) {
        0 => Ok(()),
        more => Err(LineError::FieldCount { found: 18 + more }),
    }
}

/// Returns whether the line contains only text.
#[cold]
fn is_text(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok() && line.iter().all(|&byte| is_blank(byte) || !byte.is_ascii_control())
}

/// Parses an ordinary number in one pass. Returns `None` and keeps `at` if a full parse is needed.
#[inline]
fn plain_number(line: &[u8], at: &mut usize, field: Field, record: &mut Record) -> Option<i64> {
    /// Any number with at most this many digits is in the range of every field.
    const SHORT: usize = 9;
    let mut next = *at;
    while *line.get(next)? == b' ' {
        next += 1;
    }
    let start = next;
    let negative = line[start] == b'-';
    next += usize::from(negative);
    let first_digit = next;
    let mut value = 0;
    while let Some(&byte) = line.get(next) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        if next - first_digit == SHORT {
            return None;
        }
        value = value * 10 + i64::from(digit);
        next += 1;
    }
    if next == first_digit {
        return None;
    }
    if field == Field::CpuTime {
        if line.get(next) == Some(&b'.') {
            next += 1;
            next += line[next..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        }
        record.cpu_time = Decimal::from_checked(&line[start..next])?;
    }
    if line.get(next).is_some_and(|&byte| !is_blank(byte)) {
        return None;
    }
    *at = next;
    Some(if negative { -value } else { value })
}

/// Removes the next run of non-blank bytes from the front of `rest`.
#[inline]
fn next_token<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let line = *rest;
    let start = line.iter().position(|&byte| !is_blank(byte))?;
    let length = line[start..].iter().position(|&byte| is_blank(byte)).unwrap_or(line.len() - start);
    *rest = &line[start + length..];
    Some(&line[start..start + length])
}

fn count_tokens(mut rest: &[u8]) -> usize {
    std::iter::from_fn(|| next_token(&mut rest)).count()
}

/// Returns whether a byte separates fields. A carriage return belongs to the line ends of some
/// systems.
#[inline]
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

#[inline]
fn parse_field(field: Field, token: &[u8], record: &mut Record) -> Result<i64, LineError> {
    let digits = if field == Field::CpuTime {
        let whole = whole_part(token).ok_or_else(|| not_a_number(field, token))?;
        record.cpu_time = Decimal::from_checked(token).ok_or_else(|| out_of_range(field, token))?;
        whole
    } else {
        token
    };
    let value = parse_whole(digits).map_err(|bad| match bad {
        Bad::Text => not_a_number(field, token),
        Bad::Range => out_of_range(field, token),
    })?;
    let limit = match field {
        _ if field.is_time() => SECONDS_MAX,
        Field::Allocated | Field::RequestedProcs => PROCS_MAX,
        _ => return Ok(value),
    };
    if value.abs() > limit { Err(out_of_range(field, token)) } else { Ok(value) }
}

/// Removes the decimals of `12.50`; `None` if the point is not followed by digits.
fn whole_part(token: &[u8]) -> Option<&[u8]> {
    let Some(point) = memchr::memchr(b'.', token) else { return Some(token) };
    let decimals = &token[point + 1..];
    let whole: &[u8] = if point == 0 { b"0" } else { &token[..point] };
    (decimals.len() <= DECIMAL_MAX && decimals.iter().all(u8::is_ascii_digit)).then_some(whole)
}

enum Bad {
    Text,
    Range,
}

#[inline]
fn parse_whole(token: &[u8]) -> Result<i64, Bad> {
    let (negative, digits) = match token {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return Err(Bad::Text);
    }
    let mut value: i64 = 0;
    for &byte in digits.iter().take(DIGITS_MAX) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(Bad::Text);
        }
        value = value * 10 + i64::from(digit);
    }
    if digits.len() > DIGITS_MAX {
        return Err(if digits.iter().all(u8::is_ascii_digit) { Bad::Range } else { Bad::Text });
    }
    Ok(if negative { -value } else { value })
}

#[cold]
fn not_a_number(field: Field, token: &[u8]) -> LineError {
    LineError::NotANumber { field, text: shown(token) }
}

#[cold]
fn out_of_range(field: Field, token: &[u8]) -> LineError {
    LineError::OutOfRange { field, text: shown(token) }
}

/// Returns a token for a message: short and printable.
fn shown(token: &[u8]) -> String {
    const SHOWN_MAX: usize = 24;
    let text = String::from_utf8_lossy(&token[..token.len().min(SHOWN_MAX)]);
    let more = if token.len() > SHOWN_MAX { "..." } else { "" };
    format!("{text}{more}").chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expect: Result<(i64, &str, i64), &str>) {
        let mut record = Record::unknown();
        let got = parse_line(line.as_bytes(), &mut record).map_err(|error| error.to_string());
        let got = got.map(|()| (record.get(Field::Job), record.cpu_time(), record.get(Field::ThinkTime)));
        assert_eq!(got, expect.map_err(String::from));
    }

    const TAIL: &str = "-1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1";

    #[test]
    fn lines_as_logs_have_them() {
        check(&format!("1 0 -1 1 1 -1 {TAIL} 7"), Ok((1, "-1", 7)));
        check(&format!("  1\t0 588530 937 306 142.00 {TAIL} -1 \r"), Ok((1, "142.00", -1)));
        check(&format!("007 0 -1 1 1 .5 {TAIL} 0"), Ok((7, ".5", 0)));
        check(&format!("007 0 -1 1 1 5. {TAIL} 0"), Ok((7, "5.", 0)));
    }

    #[test]
    fn lines_that_are_damaged() {
        check("", Err("0 fields where the format has 18"));
        check(&format!("1 0 -1 1 1 -1 {TAIL}"), Err("17 fields where the format has 18"));
        check(&format!("1 0 -1 1 1 -1 {TAIL} 1 1"), Err("19 fields where the format has 18"));
        check(
            &format!("1 0 -1 1x 1 -1 {TAIL} 1"),
            Err("field 4 (runtime) is \"1x\", which is not a whole number"),
        );
        check(
            &format!("1 0 -1 1.5 1 -1 {TAIL} 1"),
            Err("field 4 (runtime) is \"1.5\", which is not a whole number"),
        );
        check(
            &format!("1 1000000000000000000 -1 1 1 -1 {TAIL} 1"),
            Err("field 2 (submit) is 1000000000000000000, which is out of range"),
        );
        check(
            &format!("1 0 -1 1 1 1000000000000000000.5 {TAIL} 1"),
            Err("field 6 (cpu_time) is 1000000000000000000.5, which is out of range"),
        );
        check(&format!("- 0 -1 1 1 -1 {TAIL} 1"), Err("field 1 (job) is \"-\", which is not a whole number"));
        check("\x7fELF\x02\x01\x01\0\0\0 \x03", Err(&LineError::NoText.to_string()));
        check(
            &format!("+1 0 -1 1 1 -1 {TAIL} 1"),
            Err("field 1 (job) is \"+1\", which is not a whole number"),
        );
    }
}
