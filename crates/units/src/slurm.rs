//! Slurm's notation, for `#SBATCH` lines and the output of `sacct`. Nothing else uses it.
//!
//! It differs from the common grammar in bare numbers: minutes for a time limit, MiB for memory.

use miserly_core::Span;

use crate::memory::decimal;

/// Returns a time limit: minutes, or a clock.
///
/// Forms: `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M`, `D-H:M:S`.
pub fn time_limit(text: &str) -> Option<Span> {
    match digits(text) {
        Some(minutes) => Span::from_secs(minutes.checked_mul(60)?),
        None => clock(text),
    }
}

/// Returns an elapsed time: seconds, or a clock.
pub fn elapsed(text: &str) -> Option<Span> {
    match digits(text) {
        Some(seconds) => Span::from_secs(seconds),
        None => clock(text),
    }
}

/// Returns the KiB of an amount such as `4000M`, `7.50G` or `16G`, rounded down; a bare number is MiB.
pub fn kibibytes(text: &str) -> Option<u64> {
    let unit = text.chars().last().filter(char::is_ascii_alphabetic);
    let number = unit.map_or(text, |_| &text[..text.len() - 1]);
    let power = match unit {
        Some(unit) => "KMGTPE".find(unit.to_ascii_uppercase())?,
        None => 1,
    };
    u64::try_from(decimal(number)?.shifted(u32::try_from(10 * power).ok()?)?).ok()
}

/// Returns the span of a clock, with decimals of a second if there are any.
fn clock(text: &str) -> Option<Span> {
    let (days, rest) = text.split_once('-').map_or((None, text), |(days, rest)| (Some(days), rest));
    let (rest, fraction) = rest.split_once('.').map_or((rest, None), |(rest, part)| (rest, Some(part)));
    let parts: Vec<i64> = rest.split(':').map(digits).collect::<Option<_>>()?;
    let scales: &[i64] = match (days, parts.len()) {
        (Some(_), 1..=3) | (None, 3) => &[3_600, 60, 1],
        (None, 2) => &[60, 1],
        _ => return None,
    };
    let days = days.map_or(Some(0), digits)?.checked_mul(86_400)?;
    let secs = parts
        .iter()
        .zip(scales)
        .try_fold(days, |sum, (part, scale)| sum.checked_add(part.checked_mul(*scale)?))?;
    let ticks = fraction.map_or(Some(0), |part| decimal(&format!("0.{part}"))?.millionths())?;
    Some(Span::from_secs(secs)? + Span::from_ticks(ticks))
}

/// Returns the number of a text of up to fifteen digits and nothing else.
fn digits(text: &str) -> Option<i64> {
    let plain = (1..=15).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}
