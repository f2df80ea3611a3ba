//! Integer time: an instant and a span, both in microsecond ticks.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

const TICKS_PER_SECOND: i64 = 1_000_000;

/// An instant, in ticks (microseconds) from the origin of the run.
///
/// In a simulation the origin is the zero of the log's own clock. Sums saturate at [`Time::MAX`],
/// which means "never" in a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

/// A span of time, in ticks (microseconds). It is negative only as the difference of two instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(i64);

impl Time {
    /// The origin of the run.
    pub const ZERO: Time = Time(0);
    /// The latest instant: never.
    pub const MAX: Time = Time(i64::MAX);

    /// Returns the instant with that number of ticks after the origin.
    pub const fn from_ticks(ticks: i64) -> Time {
        Time(ticks)
    }

    /// Returns the instant with that number of seconds after the origin, or `None` on overflow.
    pub const fn from_secs(secs: i64) -> Option<Time> {
        match secs.checked_mul(TICKS_PER_SECOND) {
            Some(ticks) => Some(Time(ticks)),
            None => None,
        }
    }

    /// Returns the ticks since the origin.
    pub const fn ticks(self) -> i64 {
        self.0
    }

    /// Returns the whole seconds since the origin, rounded down.
    pub const fn secs(self) -> i64 {
        self.0.div_euclid(TICKS_PER_SECOND)
    }
}

impl Span {
    /// The empty span.
    pub const ZERO: Span = Span(0);
    /// The shortest positive span.
    pub const TICK: Span = Span(1);
    /// The longest span: forever.
    pub const MAX: Span = Span(i64::MAX);

    /// Returns a span of that many ticks.
    pub const fn from_ticks(ticks: i64) -> Span {
        Span(ticks)
    }

    /// Returns a span of that many seconds, or `None` on overflow.
    pub const fn from_secs(secs: i64) -> Option<Span> {
        match secs.checked_mul(TICKS_PER_SECOND) {
            Some(ticks) => Some(Span(ticks)),
            None => None,
        }
    }

    /// Returns the length in ticks.
    pub const fn ticks(self) -> i64 {
        self.0
    }

    /// Returns the whole seconds, rounded down.
    pub const fn secs(self) -> i64 {
        self.0.div_euclid(TICKS_PER_SECOND)
    }

    /// Returns the length in seconds, for display and division. It must not be compared.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / TICKS_PER_SECOND as f64
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl Sub for Time {
    type Output = Span;
    fn sub(self, other: Time) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

/// Writes seconds, with a decimal part only if it is not zero: `90`, `0.5`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (secs, ticks) = (self.0.unsigned_abs() / 1_000_000, self.0.unsigned_abs() % 1_000_000);
        if ticks == 0 {
            return write!(f, "{sign}{secs}");
        }
        let decimals = format!("{ticks:06}");
        write!(f, "{sign}{secs}.{}", decimals.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_convert_exactly_or_not_at_all() {
        assert_eq!(Time::from_secs(7).unwrap().ticks(), 7_000_000);
        assert_eq!(Time::from_secs(i64::MAX), None);
        assert_eq!(Span::from_secs(-3).unwrap().secs(), -3);
    }

    #[test]
    fn sums_saturate() {
        assert_eq!(Time::MAX + Span::TICK, Time::MAX);
        assert_eq!(Span::MAX + Span::MAX, Span::MAX);
    }

    #[test]
    fn shown_in_seconds() {
        assert_eq!(Span::from_ticks(90_000_000).to_string(), "90");
        assert_eq!(Span::from_ticks(500_000).to_string(), "0.5");
        assert_eq!(Span::from_ticks(-1_000_001).to_string(), "-1.000001");
        assert_eq!(Time::from_ticks(i64::MIN).to_string(), "-9223372036854.775808");
    }
}
