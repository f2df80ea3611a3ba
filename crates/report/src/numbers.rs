//! Numbers as people read them.

/// A count with its thousands apart: `28 489`.
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

/// A figure with two decimals, thousands apart; a dash where there is none.
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

/// A share as a percentage.
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
    }
}
