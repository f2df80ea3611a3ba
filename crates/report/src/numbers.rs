//! Formatting of numbers for tables.

/// Returns a count with grouped thousands, such as `28 489`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(' ');
        }
        shown.push(digit);
    }
    shown
}

/// Returns a figure with two decimals and grouped thousands, or a dash for `None`.
pub fn figure(value: Option<f64>) -> String {
    let Some(value) = value else { return "-".into() };
    let text = format!("{value:.2}");
    match text.split_once('.') {
        Some((whole, decimals)) => match whole.parse() {
            Ok(whole) => format!("{}.{decimals}", count(whole)),
            Err(_) => text,
        },
        None => text,
    }
}

/// Returns a share as a percentage.
pub fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{:.2} %", 100.0 * value))
}

/// Returns kilobytes in the largest unit not above the value, in steps of 1024: `336 GB`, `1.50
/// MB`.
pub fn memory(kilobytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1 << 30, "TB"), (1 << 20, "GB"), (1 << 10, "MB"), (1, "kB")];
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| kilobytes >= *unit).unwrap_or((1, "kB"));
    match kilobytes % unit {
        0 => format!("{} {name}", count(kilobytes / unit)),
        _ => format!("{} {name}", figure(Some(kilobytes as f64 / unit as f64))),
    }
}

/// Returns a duration in its two largest units: `3d 4h`, `12m 5s`, `7s`.
pub fn duration(secs: i64) -> String {
    const UNITS: [(i64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let sign = if secs < 0 { "-" } else { "" };
    let secs = secs.saturating_abs();
    let largest = UNITS.iter().position(|&(unit, _)| secs >= unit).unwrap_or(3);
    let mut shown = format!("{sign}{}{}", secs / UNITS[largest].0, UNITS[largest].1);
    if let Some(&(unit, name)) = UNITS.get(largest + 1) {
        let rest = secs % UNITS[largest].0 / unit;
        if rest > 0 {
            shown.push_str(&format!(" {rest}{name}"));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_people_read_them() {
        assert_eq!((count(0), count(999), count(1_234_567)), ("0".into(), "999".into(), "1 234 567".into()));
        assert_eq!(figure(Some(14272.594)), "14 272.59");
        assert_eq!((figure(Some(0.005)), figure(None)), ("0.01".into(), "-".into()));
        assert_eq!(percent(Some(0.68561)), "68.56 %");
        let memories = [0, 1023, 1024, 1536, 336 << 20, 5 << 40].map(memory);
        assert_eq!(memories, ["0 kB", "1 023 kB", "1 MB", "1.50 MB", "336 GB", "5 120 TB"]);
        let durations = [0, 59, 60, 3_661, 90_000, 86_400, -61].map(duration);
        assert_eq!(durations, ["0s", "59s", "1m", "1h 1m", "1d 1h", "1d", "-1m 1s"]);
    }
}
