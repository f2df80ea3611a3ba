//! Parsing of a line into a record without allocation.

use super::extra::{BadExtra, Extra, ExtraColumns, Extras};
use super::record::{DECIMAL_MAX, Decimal, Field, Record};

/// Maximum number of digits of a field. More digits are damage.
const DIGITS_MAX: usize = 15;

/// Largest number with these digits.
const WHOLE_MAX: i64 = 999_999_999_999_999;

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
    /// The line has fewer than eighteen fields.
    #[error("{found} fields where the format has 18{}", way_out(*found))]
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
    /// An extra field has no valid value.
    #[error("field {number} ({extra}) is {text:?}, which is not {}", extra.kind().wanted())]
    Extra {
        /// Number of the field, from 19.
        number: usize,
        /// Extra field.
        extra: Extra,
        /// Its text, shortened.
        text: String,
    },
}

fn way_out(found: usize) -> &'static str {
    if found < FEWEST { "" } else { "; --missing-fields takes the missing ones as unknown" }
}

fn wanted(field: Field) -> &'static str {
    if field == Field::CpuTime { "a number" } else { "a whole number" }
}

/// Fewest fields of a line if missing fields are unknown: up to the allocated processors.
const FEWEST: usize = Field::Allocated as usize + 1;

/// Counts of the lines that deviate from the format and are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deviations {
    /// Lines with more than eighteen fields and the [extra ones](Extra) of the log. The further ones are ignored.
    pub extra_fields: u64,
    /// Largest number of fields in such a line; 0 without one.
    pub most_fields: u64,
    /// Lines with fewer than eighteen fields. The missing ones are unknown.
    pub missing_fields: u64,
    /// Lines with a whole number written as `30.0`.
    pub decimals: u64,
}

/// Parses a job line, without its line end, into `record`.
///
/// Fields behind the eighteenth are ignored. A decimal such as `30.0` is the whole number 30.
///
/// # Errors
/// There are fewer than eighteen fields, or a field is not a number or out of range.
pub fn parse_line(line: &[u8], record: &mut Record) -> Result<(), LineError> {
    record.extras = Extras::default();
    parse_counted(line, record, false, &ExtraColumns::default(), &mut Deviations::default())
}

/// Parses a job line, and counts how it deviates. With `fill`, missing fields are unknown.
pub(super) fn parse_counted(
    line: &[u8],
    record: &mut Record,
    fill: bool,
    columns: &ExtraColumns,
    deviations: &mut Deviations,
) -> Result<(), LineError> {
    let parsed = parse_fields(line, record, fill, deviations)
        .and_then(|rest| parse_further(rest, record, columns, deviations));
    parsed.map_err(|error| if is_text(line) { error } else { LineError::NoText })
}

/// Parses the eighteen fields. Returns the rest of the line.
fn parse_fields<'a>(
    line: &'a [u8],
    record: &mut Record,
    fill: bool,
    deviations: &mut Deviations,
) -> Result<&'a [u8], LineError> {
    let mut block = [b'\n'; BLOCK];
    let copied = line.len().min(BLOCK - 1);
    block[..copied].copy_from_slice(&line[..copied]);
    if let Some(end) = parse_eighteen(&block, record)
        && line.get(end).is_none_or(|&byte| is_blank(byte))
    {
        return Ok(&line[end..]);
    }
    let (mut rest, mut decimals) = (line, false);
    for field in Field::ALL {
        let Some(token) = next_token(&mut rest) else {
            let found = field as usize;
            if !fill || found < FEWEST {
                return Err(LineError::FieldCount { found });
            }
            for missing in &Field::ALL[found..] {
                record.set(*missing, -1);
            }
            deviations.missing_fields += 1;
            break;
        };
        let token = match without_zeros(token) {
            Some(whole) if field != Field::CpuTime => {
                decimals = true;
                whole
            }
            _ => token,
        };
        record.fields[field as usize] = parse_field(field, token, record)?;
    }
    deviations.decimals += u64::from(decimals);
    Ok(rest)
}

/// Parses the extra fields behind the eighteenth, and counts any further ones.
fn parse_further(
    mut rest: &[u8],
    record: &mut Record,
    columns: &ExtraColumns,
    deviations: &mut Deviations,
) -> Result<(), LineError> {
    if !columns.is_empty() {
        columns.parse(&mut rest, &mut record.extras).map_err(|bad| bad_extra(&bad))?;
    }
    let more = count_tokens(rest);
    if more > 0 {
        deviations.extra_fields += 1;
        deviations.most_fields = deviations.most_fields.max((18 + columns.len() + more) as u64);
    }
    Ok(())
}

/// Returns the whole number of a decimal with nothing but zeros behind its point, or `None` for any other text.
fn without_zeros(token: &[u8]) -> Option<&[u8]> {
    let point = memchr::memchr(b'.', token)?;
    let decimals = &token[point + 1..];
    (!decimals.is_empty() && decimals.iter().all(|&digit| digit == b'0')).then(|| &token[..point])
}

/// Returns whether the line contains only text.
#[cold]
fn is_text(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok() && line.iter().all(|&byte| is_blank(byte) || !byte.is_ascii_control())
}

/// The number of bytes from which an ordinary line is parsed in one pass.
pub(super) const BLOCK: usize = 256;

/// Parses an ordinary line at the start of a block in one pass. Returns the position of its line end.
///
/// Returns `None` if the line needs a full parse.
#[inline]
pub(super) fn parse_plain(block: &[u8; BLOCK], record: &mut Record) -> Option<usize> {
    let end = memchr::memchr(b'\n', block)?;
    let at = parse_eighteen(block, record)?;
    block[at..end].iter().all(|&byte| is_blank(byte)).then_some(end)
}

/// Parses the fields of an ordinary line at the start of a block that contains a line end. Returns their end.
#[inline]
fn parse_eighteen(block: &[u8; BLOCK], record: &mut Record) -> Option<usize> {
    let mut cursor = Cursor { block, at: 0 };
    let [job, submit, wait, runtime, allocated, cpu_time, others @ ..] = &mut record.fields;
    cursor.skip_spaces();
    *job = cursor.digits()?;
    for value in [submit, wait, runtime, allocated] {
        *value = cursor.number()?;
    }
    cursor.spaces()?;
    let start = cursor.at;
    *cpu_time = cursor.signed()?;
    if *cpu_time == -1 {
        record.cpu_time = Decimal::UNKNOWN;
    } else {
        cursor.skip_decimals();
        record.cpu_time = Decimal::from_checked(&block[usize::from(start)..usize::from(cursor.at)])?;
    }
    for value in others {
        *value = cursor.number()?;
    }
    Some(usize::from(cursor.at))
}

/// A position in a block that contains a line end.
///
/// No method passes the line end, so the position never overflows, and no access needs a check of bounds.
struct Cursor<'a> {
    block: &'a [u8; BLOCK],
    at: u8,
}

impl Cursor<'_> {
    #[inline]
    fn byte(&self) -> u8 {
        self.block[usize::from(self.at)]
    }

    /// Parses a number behind at least one space.
    #[inline]
    fn number(&mut self) -> Option<i64> {
        self.spaces()?;
        self.signed()
    }

    /// Passes one or more spaces.
    #[inline]
    fn spaces(&mut self) -> Option<()> {
        (self.byte() == b' ').then(|| self.skip_spaces())
    }

    #[inline]
    fn skip_spaces(&mut self) {
        while self.byte() == b' ' {
            self.at += 1;
        }
    }

    /// Parses -1, or digits without a sign.
    #[inline]
    fn signed(&mut self) -> Option<i64> {
        if self.byte() != b'-' {
            return self.digits();
        }
        self.at += 1;
        // If more digits follow, there is no space behind this one, and the line gets a full parse.
        (self.byte() == b'1').then(|| {
            self.at += 1;
            -1
        })
    }

    /// Parses digits that are in the range of every field.
    #[inline]
    fn digits(&mut self) -> Option<i64> {
        /// Any number with at most this many digits is in the range of every field.
        const SHORT: u8 = 9;
        let (mut value, start) = (0_u32, self.at);
        loop {
            let digit = self.byte().wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(u32::from(digit));
            self.at += 1;
        }
        (1..=SHORT).contains(&(self.at - start)).then_some(i64::from(value))
    }

    /// Passes a point and the digits behind it.
    #[inline]
    fn skip_decimals(&mut self) {
        if self.byte() == b'.' {
            self.at += 1;
            while self.byte().is_ascii_digit() {
                self.at += 1;
            }
        }
    }
}

/// Removes the next run of non-blank bytes from the front of `rest`.
#[inline]
pub(super) fn next_token<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
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
    if value.abs() > limit(field) { Err(out_of_range(field, token)) } else { Ok(value) }
}

/// Returns the largest value of a field.
fn limit(field: Field) -> i64 {
    match field {
        _ if field.is_time() => SECONDS_MAX,
        Field::Allocated | Field::RequestedProcs => PROCS_MAX,
        _ => WHOLE_MAX,
    }
}

impl Record {
    /// Checks that a line of a log can have the values.
    ///
    /// # Errors
    /// A value is out of the range of its field.
    pub fn check(&self) -> Result<(), LineError> {
        let beyond = |field: &Field| !(-limit(*field)..=limit(*field)).contains(&self.get(*field));
        match Field::ALL.into_iter().find(beyond) {
            Some(field) => Err(out_of_range(field, self.get(field).to_string().as_bytes())),
            None => Ok(()),
        }
    }
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

#[cold]
fn bad_extra(bad: &BadExtra) -> LineError {
    LineError::Extra { number: 19 + bad.position, extra: bad.extra, text: shown(&bad.token) }
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
    fn a_record_has_the_range_of_a_line() {
        for field in Field::ALL {
            let mut record = Record::unknown();
            assert_eq!(record.check(), Ok(()));
            record.set(field, limit(field));
            assert_eq!(record.check(), Ok(()));
            record.set(field, -limit(field) - 1);
            let text = record.get(field).to_string();
            assert_eq!(record.check(), Err(LineError::OutOfRange { field, text }));
        }
    }

    #[test]
    fn lines_that_deviate_are_counted() {
        let (mut record, mut found) = (Record::unknown(), Deviations::default());
        let columns = ExtraColumns::default();
        let mut parse = |line: &str, fill| {
            parse_counted(line.as_bytes(), &mut record, fill, &columns, &mut found).unwrap();
            Field::ALL.map(|field| record.get(field))
        };
        let whole = parse(&format!("1 0 -1 30 2 -1 {TAIL} 7"), true);
        assert_eq!(parse(&format!("1 0.0 -1.0 30.00 2.0 -1 {TAIL} 7 8 9"), true), whole);
        let mut short = [-1; 18];
        short[..5].copy_from_slice(&[1, 0, 0, 30, 2]);
        assert_eq!(parse("1 0 0 30 2\r", true), short);
        assert_eq!(found, Deviations { extra_fields: 1, most_fields: 20, missing_fields: 1, decimals: 1 });
    }

    #[test]
    fn numbers_that_begin_like_an_unknown_one() {
        check(&format!("1 0 -1 1 1 -1.5 {TAIL} -12"), Ok((1, "-1.5", -12)));
        check(&format!("1 0 -1 1 1 -17 {TAIL} 1234567890"), Ok((1, "-17", 1_234_567_890)));
        check(
            &format!("1 0 -1-1 1 1 -1 {TAIL} 1"),
            Err("field 3 (wait) is \"-1-1\", which is not a whole number"),
        );
    }

    #[test]
    fn lines_that_are_damaged() {
        check("", Err("0 fields where the format has 18"));
        check("1 2 3 4", Err("4 fields where the format has 18"));
        check(
            &format!("1 0 -1 1 1 -1 {TAIL}"),
            Err("17 fields where the format has 18; --missing-fields takes the missing ones as unknown"),
        );
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
