//! Formatting of values: grouped thousands, powers of ten, and times in common units.

use miserly_units::{duration, span_of_seconds};

use crate::numbers::grouped;

const MINUTE: f64 = 60.0;
const DAY: f64 = 86_400.0;

/// Formats a number with the decimals that `step` needs and thousands grouped by a thin space.
///
/// Very large and very small numbers are written as powers of ten.
pub(super) fn number(value: f64, step: f64) -> String {
    let size = value.abs().max(step.abs());
    if value != 0.0 && !(1e-6..1e12).contains(&size) {
        return scientific(value);
    }
    // Steps are between 10^-6 and 10^12 here.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let decimals = (-(step.abs().max(1e-9).log10() + 1e-9).floor()).clamp(0.0, 9.0) as usize;
    with_decimals(value, decimals)
}

/// Formats a number with `decimals` decimals and thousands grouped by a thin space.
pub(super) fn with_decimals(value: f64, decimals: usize) -> String {
    if value.abs() >= 1e15 {
        return scientific(value);
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let nothing = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let sign = if value < 0.0 && !nothing { "−" } else { "" };
    // Four digits stand together, as in a year.
    let grouped = if whole.len() > 4 { grouped(whole, '\u{2009}') } else { whole.to_owned() };
    format!("{sign}{grouped}{rest}")
}

fn scientific(value: f64) -> String {
    let text = format!("{value:.2e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.trim_end_matches('0').trim_end_matches('.').replace('-', "−");
    format!("{digits}·10{}", superscript(exponent.parse().unwrap_or(0)))
}

/// Returns a time or a duration, to the second from a minute on: `2h30m`, `3d12h30m`.
pub(super) fn time(secs: f64) -> String {
    if secs.abs() >= 1e12 {
        return format!("{}d", scientific(secs / DAY));
    }
    let shown = if secs.abs() < MINUTE { secs } else { secs.round() };
    duration(span_of_seconds(shown)).replace('-', "−")
}

pub(super) fn superscript(exponent: i32) -> String {
    let raise = |c| match c {
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        '0' => '⁰',
        _ => '⁻',
    };
    exponent.to_string().chars().map(raise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let shown = [
            (0.0, 1.0),
            (-2.5, 0.5),
            (1234.0, 1.0),
            (-12_345.6, 0.1),
            (1e13, 1e12),
            (2.5e-9, 1e-9),
            (-0.001, 1.0),
        ];
        let shown = shown.map(|(value, step)| number(value, step).replace('\u{2009}', "_"));
        assert_eq!(shown, ["0", "−2.5", "1234", "−12_345.6", "1·10¹³", "2.5·10⁻⁹", "0"]);
    }

    #[test]
    fn times() {
        let shown = [0.0, 59.0, 90.0, 9_000.0, 12_345.0, 90_000.0, 304_200.0, -60.0].map(time);
        assert_eq!(shown, ["0s", "59s", "1m30s", "2h30m", "3h25m45s", "1d1h", "3d12h30m", "−1m"]);
    }
}
