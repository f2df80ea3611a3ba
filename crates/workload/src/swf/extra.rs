//! Fields of a job that the format has not: nodes, GPUs, memory, texts.
//!
//! A header line `; Extra: nodes gpus name` names the fields 19 and up of the lines below it.

use std::borrow::Cow;
use std::fmt;

use miserly_core::described_enum;

use super::header::value_of;
use super::parse::next_token;

/// The name of the header line.
const HEADER: &str = "Extra";

/// The text of a missing value.
const MISSING: &[u8] = b"-";

/// Largest number: fifteen digits, as in all fields.
const NUMBER_MAX: u64 = 999_999_999_999_999;

/// Thousandths in one.
const THOUSAND: u64 = 1_000;

described_enum! {
    /// A field that the format has not.
    pub enum Extra, kind: ExtraKind {
        Nodes "nodes" Whole
            "the nodes of the job",
        Gpus "gpus" Thousandths
            "the GPUs of the whole job, with up to three decimals",
        GpuType "gpu_type" Text
            "the type of the GPUs",
        JobMemory "job_memory" Whole
            "the memory of the whole job, in kB",
        Name "name" Text
            "the name of the job",
        Account "account" Text
            "the account that pays for the job",
        Features "features" Text
            "the features of hosts that the job needs",
    }
}

/// The kind of the values of an [`Extra`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtraKind {
    /// A whole number.
    Whole,
    /// A number with up to three decimals. [`Extras::number`] counts thousandths.
    Thousandths,
    /// A text.
    Text,
}

impl ExtraKind {
    /// Returns the description of a valid value, for messages.
    pub(crate) fn wanted(self) -> &'static str {
        match self {
            ExtraKind::Whole => "a whole number of at most 15 digits",
            ExtraKind::Thousandths => "a number of at most 12 digits and three decimals",
            ExtraKind::Text => "a text in which % begins two hexadecimal digits of UTF-8",
        }
    }
}

impl Extra {
    /// Returns the extra field of this name.
    pub fn named(name: &str) -> Option<Extra> {
        Extra::ALL.into_iter().find(|extra| extra.name() == name)
    }
}

/// A value that an extra field cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{extra} is {text:?}, which is not {}", extra.kind().wanted())]
pub struct ExtraError {
    /// The extra field.
    pub extra: Extra,
    /// The value.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Number(u64),
    Text(Box<str>),
}

/// The extra fields of a job. Without any, they have the size of a pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras(pub(super) Option<Box<Values>>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Values {
    pub(super) known: [Option<Value>; Extra::ALL.len()],
    /// The values of columns without a known name, as written.
    pub(super) unknown: Vec<Box<str>>,
}

impl Extras {
    /// Returns whether the job has no extra field.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether the job has this field.
    pub fn has(&self, extra: Extra) -> bool {
        self.value(extra).is_some()
    }

    fn value(&self, extra: Extra) -> Option<&Value> {
        self.0.as_ref()?.known[extra as usize].as_ref()
    }

    /// Returns a number: thousandths of [`ExtraKind::Thousandths`]. `None` for a text.
    pub fn number(&self, extra: Extra) -> Option<u64> {
        match self.value(extra)? {
            Value::Number(number) => Some(*number),
            Value::Text(_) => None,
        }
    }

    /// Returns the value as a text without encoding, such as `1.5` for GPUs.
    pub fn text(&self, extra: Extra) -> Option<Cow<'_, str>> {
        Some(match self.value(extra)? {
            Value::Text(text) => Cow::Borrowed(text),
            Value::Number(number) if extra.kind() == ExtraKind::Thousandths => {
                Cow::Owned(thousandths(*number))
            }
            Value::Number(number) => Cow::Owned(number.to_string()),
        })
    }

    /// Sets a number: thousandths of [`ExtraKind::Thousandths`]. The largest number has fifteen digits.
    pub fn set_number(&mut self, extra: Extra, number: u64) {
        let number = number.min(NUMBER_MAX);
        self.put(
            extra,
            match extra.kind() {
                ExtraKind::Text => Value::Text(number.to_string().into()),
                _ => Value::Number(number),
            },
        );
    }

    /// Sets a value from its text without encoding, such as `1.5` for GPUs. An empty text is no value.
    ///
    /// # Errors
    /// The field is a number, and the text is not.
    pub fn set(&mut self, extra: Extra, text: &str) -> Result<(), ExtraError> {
        let value = match extra.kind() {
            _ if text.is_empty() => {
                if let Some(values) = &mut self.0 {
                    values.known[extra as usize] = None;
                }
                self.shrink();
                return Ok(());
            }
            ExtraKind::Text => Value::Text(text.into()),
            kind => {
                let number = parse_number(text.as_bytes(), kind);
                Value::Number(number.ok_or_else(|| ExtraError { extra, text: text.into() })?)
            }
        };
        self.put(extra, value);
        Ok(())
    }

    fn put(&mut self, extra: Extra, value: Value) {
        self.0.get_or_insert_default().known[extra as usize] = Some(value);
    }

    /// Keeps no values if none is known.
    fn shrink(&mut self) {
        if self.0.as_ref().is_some_and(|values| **values == Values::default()) {
            self.0 = None;
        }
    }
}

/// The columns of a log behind the eighteenth field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtraColumns(Vec<Column>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Column {
    Known(Extra),
    /// A column that is kept as written.
    Unknown(Box<str>),
}

impl ExtraColumns {
    /// Returns the columns that a comment names, or `None` if it is another comment.
    ///
    /// ```
    /// use miserly_workload::swf::{Extra, ExtraColumns};
    /// let columns = ExtraColumns::of_comment("; Extra: nodes colour gpus").unwrap();
    /// assert!(columns.known().eq([Extra::Nodes, Extra::Gpus]));
    /// assert_eq!(columns.to_string(), "; Extra: nodes colour gpus");
    /// ```
    pub fn of_comment(comment: &str) -> Option<ExtraColumns> {
        let mut columns = ExtraColumns::default();
        for name in value_of(comment, HEADER)?.split_whitespace() {
            let known = Extra::named(name).filter(|extra| !columns.has(*extra));
            columns.0.push(known.map_or_else(|| Column::Unknown(name.into()), Column::Known));
        }
        Some(columns)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of columns, with unknown ones.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether a column has this field.
    pub fn has(&self, extra: Extra) -> bool {
        self.known().any(|known| known == extra)
    }

    /// Returns the known fields in the order of the columns.
    pub fn known(&self) -> impl Iterator<Item = Extra> + '_ {
        self.0.iter().filter_map(|column| match column {
            Column::Known(extra) => Some(*extra),
            Column::Unknown(_) => None,
        })
    }

    /// Parses the values behind the eighteenth field.
    pub(super) fn parse(&self, rest: &mut &[u8], extras: &mut Extras) -> Result<(), BadExtra> {
        *extras = Extras::default();
        let mut values = Values::default();
        for (position, column) in self.0.iter().enumerate() {
            let token = next_token(rest).unwrap_or(MISSING);
            match column {
                Column::Unknown(_) => values.unknown.push(String::from_utf8_lossy(token).into()),
                Column::Known(_) if token == MISSING => {}
                Column::Known(extra) => {
                    let value = parse_value(token, extra.kind());
                    let bad = || BadExtra { position, extra: *extra, token: token.to_owned() };
                    values.known[*extra as usize] = Some(value.ok_or_else(bad)?);
                }
            }
        }
        let has_unknown = values.unknown.iter().any(|token| token.as_bytes() != MISSING);
        if values.known.iter().any(Option::is_some) || has_unknown {
            extras.0 = Some(Box::new(values));
        }
        Ok(())
    }

    /// Writes the values behind the eighteenth field, each behind a space.
    pub(super) fn write(&self, extras: &Extras, line: &mut Vec<u8>) {
        let mut unknown = extras.0.iter().flat_map(|values| &values.unknown);
        for column in &self.0 {
            line.push(b' ');
            match column {
                Column::Known(extra) => match extras.text(*extra) {
                    Some(text) => encode(&text, line),
                    None => line.extend_from_slice(MISSING),
                },
                Column::Unknown(_) => {
                    line.extend_from_slice(unknown.next().map_or(MISSING, |token| token.as_bytes()));
                }
            }
        }
    }
}

impl FromIterator<Extra> for ExtraColumns {
    fn from_iter<I: IntoIterator<Item = Extra>>(extras: I) -> ExtraColumns {
        let mut columns = ExtraColumns::default();
        for extra in extras {
            if !columns.has(extra) {
                columns.0.push(Column::Known(extra));
            }
        }
        columns
    }
}

/// The header line.
impl fmt::Display for ExtraColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "; {HEADER}:")?;
        self.0.iter().try_for_each(|column| match column {
            Column::Known(extra) => write!(f, " {extra}"),
            Column::Unknown(name) => write!(f, " {name}"),
        })
    }
}

/// A token that is no value of its column.
pub(super) struct BadExtra {
    /// Position of the column, from 0.
    pub(super) position: usize,
    pub(super) extra: Extra,
    pub(super) token: Vec<u8>,
}

fn parse_value(token: &[u8], kind: ExtraKind) -> Option<Value> {
    match kind {
        ExtraKind::Text => Some(Value::Text(decode(token)?.into())),
        _ => parse_number(token, kind).map(Value::Number),
    }
}

fn parse_number(text: &[u8], kind: ExtraKind) -> Option<u64> {
    if kind == ExtraKind::Whole {
        return parse_digits(text);
    }
    let (whole, decimals) = match memchr::memchr(b'.', text) {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &b"0"[..]),
    };
    let unit = [100, 10, 1].get(decimals.len().checked_sub(1)?)?;
    let thousandths = parse_digits(whole)?.checked_mul(THOUSAND)? + parse_digits(decimals)? * unit;
    (thousandths <= NUMBER_MAX).then_some(thousandths)
}

fn parse_digits(digits: &[u8]) -> Option<u64> {
    let is_number = (1..=15).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
}

/// Returns thousandths as a decimal without trailing zeros.
fn thousandths(number: u64) -> String {
    let text = format!("{}.{:03}", number / THOUSAND, number % THOUSAND);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Appends a text with blanks, `%`, `;` and control characters as `%20`.
fn encode(text: &str, line: &mut Vec<u8>) {
    if text.as_bytes() == MISSING {
        return line.extend_from_slice(b"%2D");
    }
    let mut bytes = [0; 4];
    for c in text.chars() {
        let bytes = c.encode_utf8(&mut bytes).as_bytes();
        if matches!(c, '%' | ';') || c.is_whitespace() || c.is_control() {
            for byte in bytes {
                line.extend_from_slice(format!("%{byte:02X}").as_bytes());
            }
        } else {
            line.extend_from_slice(bytes);
        }
    }
}

fn decode(token: &[u8]) -> Option<String> {
    let mut text = Vec::with_capacity(token.len());
    let mut bytes = token.iter();
    while let Some(&byte) = bytes.next() {
        text.push(if byte == b'%' { hex(*bytes.next()?)? << 4 | hex(*bytes.next()?)? } else { byte });
    }
    String::from_utf8(text).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests;
