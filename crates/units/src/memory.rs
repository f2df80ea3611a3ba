//! Amounts of memory: from text to bytes and back.

use crate::error::{UnitError, nearest};

/// The units as they are printed, and their names in lower case; each is 1024 of the one before.
const UNITS: [(&str, &[&str]); 5] = [
    ("B", &["b", "byte", "bytes"]),
    ("KiB", &["k", "kb", "kib"]),
    ("MiB", &["m", "mb", "mib"]),
    ("GiB", &["g", "gb", "gib"]),
    ("TiB", &["t", "tb", "tib"]),
];

/// Returns the bytes that `text` denotes, rounded down to a whole byte.
///
/// Every unit is 1024 of the one before: `512MiB`, `512MB` and `512M` are the same. Case does not matter.
///
/// # Errors
/// Text outside the grammar, a number without a unit, no memory, and more than a `u64` holds.
pub fn parse_memory(text: &str) -> Result<u64, UnitError> {
    let written = text.trim();
    let at = written.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(written.len());
    let (number, unit) = (&written[..at], written[at..].trim_start());
    let Some(number) = decimal(number) else {
        return Err(UnitError::Memory { text: text.to_owned() });
    };
    if unit.is_empty() {
        return Err(UnitError::NoMemoryUnit { text: written.to_owned() });
    }
    let shift = shift(unit).ok_or_else(|| UnitError::MemoryUnit {
        text: text.to_owned(),
        unit: unit.to_owned(),
        nearest: nearest(unit, &UNITS),
    })?;
    match number.shifted(shift).and_then(|bytes| u64::try_from(bytes).ok()) {
        Some(0) => Err(UnitError::NoMemory { text: text.to_owned() }),
        Some(bytes) => Ok(bytes),
        None => Err(UnitError::TooLarge { text: text.to_owned() }),
    }
}

/// Returns an amount of memory in the largest unit of which there is one, with at most two decimals: `1.5GiB`.
pub fn memory(bytes: u64) -> String {
    let power = (0..UNITS.len()).rev().find(|power| bytes >> (10 * power) > 0).unwrap_or(0);
    let unit = 1_u128 << (10 * power);
    let hundredths = (u128::from(bytes) * 100 + unit / 2) / unit;
    let (whole, decimals) = (hundredths / 100, format!("{:02}", hundredths % 100));
    match decimals.trim_end_matches('0') {
        "" => format!("{whole}{}", UNITS[power].0),
        decimals => format!("{whole}.{decimals}{}", UNITS[power].0),
    }
}

/// Returns the power of 2 of a unit.
fn shift(unit: &str) -> Option<u32> {
    let lower = unit.to_ascii_lowercase();
    let power = UNITS.iter().position(|(_, names)| names.contains(&lower.as_str()))?;
    u32::try_from(10 * power).ok()
}

/// A number with decimals, as digits over a power of ten.
pub(crate) struct Decimal {
    digits: i128,
    scale: i128,
}

impl Decimal {
    /// Returns the number times 2^`shift`, rounded down.
    pub(crate) fn shifted(&self, shift: u32) -> Option<i128> {
        Some(self.digits.checked_mul(1 << shift)? / self.scale)
    }

    /// Returns the number in millionths, rounded down.
    pub(crate) fn millionths(&self) -> Option<i64> {
        i64::try_from(self.digits.checked_mul(1_000_000)? / self.scale).ok()
    }
}

/// Returns the number of a text: digits, and perhaps a point and up to six more.
pub(crate) fn decimal(text: &str) -> Option<Decimal> {
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    if !plain(whole) || !plain(decimals) || decimals.len() > 6 {
        return None;
    }
    let scale = 10_i128.pow(u32::try_from(decimals.len()).ok()?);
    let digits = whole.parse::<i128>().ok()?.checked_mul(scale)?.checked_add(decimals.parse().ok()?)?;
    Some(Decimal { digits, scale })
}
