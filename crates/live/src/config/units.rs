//! Lengths of time as people write them.

use miserly_core::Span;
use toml::{Spanned, Value};

use super::error::{Problem, of_field};

/// The units of time, in seconds.
const TIMES: [(&str, i64); 7] =
    [("s", 1), ("sec", 1), ("m", 60), ("min", 60), ("h", 3600), ("d", 86_400), ("w", 604_800)];

/// The longest time, seconds: as long as the times of a log may be.
const LONGEST: i64 = 10_000_000_000;

/// The length of time that a field says, if it is there.
pub(super) fn time(written: Option<&Spanned<Value>>, field: &str) -> Result<Option<Span>, Problem> {
    let read = |written: &Spanned<Value>| {
        duration(written.get_ref()).map_err(|problem| of_field(written, field, &problem))
    };
    written.map(read).transpose()
}

/// A length of time such as `"15min"`, or a number of seconds.
pub(super) fn duration(value: &Value) -> Result<Span, String> {
    let secs = match value {
        Value::Integer(number) => Some(*number),
        Value::String(text) => split(text).and_then(|(number, unit)| {
            let (_, secs) = TIMES.iter().find(|(name, _)| *name == unit)?;
            i64::try_from(number).ok()?.checked_mul(*secs)
        }),
        _ => None,
    };
    secs.filter(|secs| (0..=LONGEST).contains(secs)).and_then(Span::from_secs).ok_or_else(|| {
        "a time is written as \"90s\", \"15min\", \"2h\", \"1d\" or \"1w\", or as a number of seconds, 0 or more".into()
    })
}

/// A whole number and the unit behind it.
fn split(text: &str) -> Option<(u64, &str)> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    Some((number.parse().ok()?, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let secs = |text: &str| duration(&Value::String(text.into())).ok().map(Span::secs);
        for (text, expect) in
            [("90s", 90), ("15min", 900), ("5m", 300), ("2h", 7200), ("1d", 86_400), ("0s", 0)]
        {
            assert_eq!(secs(text), Some(expect), "{text}");
        }
        for text in ["", "90", "s", "-1s", "1.5h", "1 y", "99999999999s", "9223372036854775807w"] {
            assert_eq!(secs(text), None, "{text}");
        }
        assert_eq!(duration(&Value::Integer(90)).ok().map(Span::secs), Some(90));
        assert!(duration(&Value::Integer(-1)).is_err() && duration(&Value::Float(1.0)).is_err());
    }
}
