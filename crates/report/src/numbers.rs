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

/// Returns a mean and its half width, both to the second digit of the half width, and to two decimals at most.
pub fn with_half_width(mean: f64, half_width: f64) -> [String; 2] {
    let place = half_width.abs().log10().floor();
    if !place.is_finite() || place < 0.0 {
        return [mean, half_width].map(|value| decimals(value, 2));
    }
    let unit = 10_f64.powf(place - 1.0);
    [mean, half_width].map(|value| decimals((value / unit).round() * unit, usize::from(place < 1.0)))
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
    fn a_half_width_decides_the_digits() {
        let text = |mean, half_width| with_half_width(mean, half_width).join(" ±");
        assert_eq!(text(44_430.53, 697.3), "44 430 ±700");
        assert_eq!(text(6_811.16, 53.36), "6 811 ±53");
        assert_eq!((text(19.2847, 3.04), text(0.5, 0.042)), ("19.3 ±3.0".into(), "0.50 ±0.04".into()));
        assert_eq!((text(7.0, 0.0), text(-1234.5, 99.7)), ("7.00 ±0.00".into(), "-1 235 ±100".into()));
    }

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
