//! A record in few bytes: numbers of its known fields, and its extra fields.
//!
//! Thirty to fifty bytes hold an ordinary job, which has almost two hundred in memory.

use super::extra::{Extra, ExtraKind, Extras, Value, Values};
use super::record::{Decimal, Field, Record};

/// The bytes that say which fields are known.
const MASK: usize = 3;

/// The most bytes of a number.
const FIELD_MOST: usize = 10;

/// The bit for a field 6 with decimals, behind those of the eighteen fields.
const DECIMALS: u32 = 1 << 18;

/// The bit for extra fields.
const EXTRAS: u32 = 1 << 19;

/// The bit for columns without a known name, behind those of the known extra fields.
const UNKNOWN: u64 = 1 << Extra::ALL.len();

impl Record {
    /// Appends the record to `bytes`.
    pub(crate) fn pack(&self, bytes: &mut Vec<u8>) {
        let places = (0..).zip(&self.fields);
        let mut mask = places.fold(0, |mask, (place, value)| mask | u32::from(*value != -1) << place);
        let cpu_time = self.cpu_time();
        let has_decimals = !is_whole(cpu_time, self.get(Field::CpuTime));
        mask |= if has_decimals { DECIMALS } else { 0 };
        mask |= if self.extras.0.is_some() { EXTRAS } else { 0 };
        let mut packed = [0; MASK + FIELD_MOST * Field::ALL.len()];
        packed[..MASK].copy_from_slice(&mask.to_le_bytes()[..MASK]);
        let mut at = MASK;
        for value in self.fields {
            if value != -1 {
                // The sign is the lowest bit, so that small negative numbers are short.
                at += put_number(&mut packed[at..], (value << 1 ^ value >> 63).cast_unsigned());
            }
        }
        bytes.extend_from_slice(&packed[..at]);
        if has_decimals {
            text(bytes, cpu_time);
        }
        if let Some(values) = &self.extras.0 {
            pack_extras(values, bytes);
        }
    }

    /// Replaces the record by that of [`pack`](Record::pack). `None` if the bytes are others, which a damaged file has.
    pub(crate) fn unpack(&mut self, mut bytes: &[u8]) -> Option<()> {
        let rest = &mut bytes;
        let (mask, behind) = rest.split_first_chunk::<MASK>()?;
        *rest = behind;
        let mask = u32::from_le_bytes([mask[0], mask[1], mask[2], 0]);
        for (place, field) in self.fields.iter_mut().enumerate() {
            *field = -1;
            if mask >> place & 1 == 1 {
                let value = take_number(rest)?;
                *field = (value >> 1).cast_signed() ^ -(value & 1).cast_signed();
            }
        }
        self.cpu_time = if mask & DECIMALS != 0 {
            Decimal::from_checked(take_text(rest)?.as_bytes())?
        } else {
            match self.get(Field::CpuTime) {
                -1 => Decimal::UNKNOWN,
                whole => Decimal::from_checked(whole.to_string().as_bytes())?,
            }
        };
        self.extras.0 = if mask & EXTRAS == 0 { None } else { Some(Box::new(take_extras(rest)?)) };
        rest.is_empty().then_some(())
    }
}

/// Returns whether a decimal is a whole number in its usual form.
fn is_whole(decimal: &str, whole: i64) -> bool {
    if whole == -1 { decimal == "-1" } else { decimal == whole.to_string() }
}

fn pack_extras(values: &Values, bytes: &mut Vec<u8>) {
    let mask =
        (0..).zip(&values.known).fold(0, |mask, (place, value)| mask | u64::from(value.is_some()) << place);
    number(bytes, mask | if values.unknown.is_empty() { 0 } else { UNKNOWN });
    for value in values.known.iter().flatten() {
        match value {
            Value::Number(value) => number(bytes, *value),
            Value::Text(value) => text(bytes, value),
        }
    }
    if !values.unknown.is_empty() {
        number(bytes, values.unknown.len() as u64);
        values.unknown.iter().for_each(|value| text(bytes, value));
    }
}

fn take_extras(rest: &mut &[u8]) -> Option<Values> {
    let mask = take_number(rest)?;
    let mut values = Values::default();
    for (extra, value) in Extra::ALL.into_iter().zip(&mut values.known) {
        if mask >> extra as u32 & 1 == 1 {
            *value = Some(match extra.kind() {
                ExtraKind::Text => Value::Text(take_text(rest)?.into()),
                ExtraKind::Whole | ExtraKind::Thousandths => Value::Number(take_number(rest)?),
            });
        }
    }
    if mask & UNKNOWN != 0 {
        for _ in 0..take_number(rest)? {
            values.unknown.push(take_text(rest)?.into());
        }
    }
    Some(values)
}

/// Appends a number in groups of seven bits, the lowest first.
fn number(bytes: &mut Vec<u8>, value: u64) {
    let mut packed = [0; FIELD_MOST];
    let length = put_number(&mut packed, value);
    bytes.extend_from_slice(&packed[..length]);
}

/// Writes a number to the begin of some bytes, and returns its length.
#[inline]
fn put_number(bytes: &mut [u8], mut value: u64) -> usize {
    let mut length = 0;
    loop {
        let more = value >> 7;
        let is_last = more == 0;
        #[allow(clippy::cast_possible_truncation, reason = "the lowest seven bits")]
        let low = value as u8 & 0x7f;
        bytes[length] = low | if is_last { 0 } else { 0x80 };
        length += 1;
        if is_last {
            return length;
        }
        value = more;
    }
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    number(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let length = usize::try_from(take_number(rest)?).ok()?;
    let (text, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    std::str::from_utf8(text).ok()
}

impl Extras {
    /// Adds the extra fields that the job has to those of a log.
    pub(crate) fn note(&self, known: &mut [bool; Extra::ALL.len()]) {
        for (known, value) in known.iter_mut().zip(self.0.iter().flat_map(|values| &values.known)) {
            *known |= value.is_some();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::parse_line;
    use super::*;

    #[track_caller]
    fn check(record: &Record) -> usize {
        let mut bytes = vec![];
        record.pack(&mut bytes);
        let mut again = Record::unknown();
        again.set(Field::Job, 7);
        again.extras_mut().set_number(Extra::Nodes, 1);
        assert_eq!(again.unpack(&bytes), Some(()));
        assert_eq!(again, *record);
        assert_eq!(again.unpack(&bytes[..bytes.len() - 1]), None, "a part");
        bytes.push(0);
        assert_eq!(again.unpack(&bytes), None, "more");
        bytes.len() - 1
    }

    #[test]
    fn a_record_is_short_and_the_same_again() {
        assert_eq!(check(&Record::unknown()), 3);
        let mut record = Record::unknown();
        let line = "1 1617235200 5 86400 4 142.00 -1 4 86400 -1 1 7 -1 -1 2 -1 -1 -1";
        parse_line(line.as_bytes(), &mut record).unwrap();
        assert_eq!(check(&record), 30);
        record.extras_mut().set_number(Extra::Gpus, 1_500);
        record.extras_mut().set(Extra::Name, "a job - % \u{fc}").unwrap();
        check(&record);
        record.set(Field::CpuTime, 12);
        check(&record);
    }

    proptest! {
        #[test]
        fn any_numbers(fields in prop::array::uniform18(any::<i64>()), nodes in 0_u64..1 << 49) {
            let mut record = Record::unknown();
            for (field, value) in Field::ALL.into_iter().zip(fields) {
                if field != Field::CpuTime {
                    record.set(field, value);
                }
            }
            record.extras_mut().set_number(Extra::Nodes, nodes);
            check(&record);
        }
    }
}
