//! Durations and amounts of memory in a file, as numbers or as texts.

use miserly_core::Span;
use miserly_units::{UnitError, parse_duration_from, parse_memory};
use toml::Value;

/// Returns the duration of a number of seconds, or of a text such as `1d12h`.
///
/// # Errors
/// A value that is no duration, and one above [`miserly_units::LONGEST`].
pub fn duration(value: &Value) -> Result<Span, UnitError> {
    parse_duration_from(&text(value), Span::ZERO)
}

/// Returns the kilobytes of a text such as `64GiB`, rounded down.
///
/// # Errors
/// A value that is no amount of memory, and less than a kilobyte.
pub fn kilobytes(value: &Value) -> Result<u64, UnitError> {
    let text = text(value);
    match parse_memory(&text)? >> 10 {
        0 => Err(UnitError::NoMemory { text }),
        kilobytes => Ok(kilobytes),
    }
}

/// Returns the value as the grammar of the texts has it.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        other => other.type_str().to_owned(),
    }
}
