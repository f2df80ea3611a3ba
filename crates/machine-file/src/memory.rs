//! The grammar of memory sizes.

use toml::Value;

/// The units, in kilobytes.
const UNITS: [(&str, u64); 4] = [("KB", 1), ("MB", 1 << 10), ("GB", 1 << 20), ("TB", 1 << 30)];

/// Returns the kilobytes of a number, or of a text such as `64GB`. A unit is 1024 of the one before it.
///
/// # Errors
/// The grammar, if the value does not follow it.
pub fn kilobytes(value: &Value) -> Result<u64, String> {
    let amount = match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        Value::String(text) => of_text(text),
        _ => None,
    };
    // More would be more than files and documents can say.
    let most = i64::MAX.unsigned_abs();
    amount.filter(|amount| (1..=most).contains(amount)).ok_or_else(|| {
        "write it as \"64GB\" (KB, MB, GB or TB, each 1024 of the one before), or as a number of kB above 0"
            .into()
    })
}

fn of_text(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit.trim())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}
