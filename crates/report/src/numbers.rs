//! Formatting of numbers for tables.

/// Returns a count with grouped thousands, such as `28 489`.
pub fn count(value: u64) -> String {
    grouped(&value.to_string(), ' ')
}

/// Returns a figure with two decimals and grouped thousands, or a dash for `None`.
pub fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| decimals(value, 2))
}

/// Returns a number with `digits` decimals and grouped thousands.
pub fn decimals(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |text| ("-", text));
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    format!("{sign}{}{fraction}", grouped(whole, ' '))
}

/// Returns digits with a separator between the thousands.
pub(crate) fn grouped(digits: &str, separator: char) -> String {
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(separator);
        }
        shown.push(digit);
    }
    shown
}

/// Returns a share as a percentage.
pub fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{:.2} %", 100.0 * value))
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
        assert_eq!((decimals(12.0, 0), decimals(-1_234_567.5, 1)), ("12".into(), "-1 234 567.5".into()));
        assert_eq!((decimals(0.0, 2), decimals(999.999, 2)), ("0.00".into(), "1 000.00".into()));
    }
}
