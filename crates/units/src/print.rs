//! Durations: from ticks to text.

use jiff::fmt::friendly::{Designator, Direction, FractionalUnit, Spacing, SpanPrinter};
use jiff::{SignedDuration, Span as Parts};
use miserly_core::Span;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// The units that a rounded duration has, in ticks, from large to small.
const UNITS: [i64; 5] = [DAY, 3_600 * SECOND, 60 * SECOND, SECOND, SECOND / 1_000];

const PRINTER: SpanPrinter = SpanPrinter::new()
    .designator(Designator::HumanTime)
    .spacing(Spacing::None)
    .direction(Direction::Sign)
    .fractional(Some(FractionalUnit::Second));

/// Returns the duration exactly, in days and below, without blanks: `1d12h`, `1h30m10s`, `0.25s`.
///
/// [`parse_duration`](crate::parse_duration) reads it back.
pub fn duration(span: Span) -> String {
    let ticks = span.ticks();
    match parts(ticks) {
        Some(parts) => PRINTER.span_to_string(&parts),
        // Beyond the days of jiff, which are 20 000 years.
        None => PRINTER.duration_to_string(&SignedDuration::from_micros(ticks)),
    }
}

/// Returns the duration in its two largest units, rounded: `1d12h`, `19m10s`.
///
/// Below a minute it has tenths of a second, and below a second milliseconds.
pub fn duration_rounded(span: Span) -> String {
    let size = span.ticks().unsigned_abs();
    let largest = UNITS.iter().position(|unit| size >= unit.unsigned_abs());
    let grain = match largest {
        Some(0..=2) => largest.map_or(1, |at| UNITS[at + 1]),
        Some(3) => SECOND / 10,
        Some(_) => SECOND / 1_000,
        None => 1,
    };
    duration(Span::from_ticks(rounded(span.ticks(), grain)))
}

/// Returns the span of a measured number of seconds, such as a mean, to the nearest tick, for display only.
pub fn span_of_seconds(secs: f64) -> Span {
    // The cast saturates, and what is no number is 0.
    #[allow(clippy::cast_possible_truncation)]
    let ticks = (secs * 1e6).round() as i64;
    Span::from_ticks(ticks)
}

/// Returns days, hours, minutes, seconds and microseconds, if jiff holds as many days.
fn parts(ticks: i64) -> Option<Parts> {
    let (days, rest) = (ticks / DAY, ticks % DAY);
    let (secs, micros) = (rest / SECOND, rest % SECOND);
    let parts = Parts::new().try_days(days).ok()?.try_hours(secs / 3_600).ok()?;
    parts.try_minutes(secs / 60 % 60).ok()?.try_seconds(secs % 60).ok()?.try_microseconds(micros).ok()
}

/// Returns the nearest multiple of `grain`; halves go away from 0.
fn rounded(ticks: i64, grain: i64) -> i64 {
    let half = if ticks < 0 { -grain / 2 } else { grain / 2 };
    ticks.saturating_add(half) / grain * grain
}
