//! How the value of a job rises while it waits.

use miserly_core::{Span, Time};
use miserly_formula::{Direction, Line};

/// A line over time that the value of a job is never above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Aging {
    /// By the wait in seconds.
    line: Line,
    submit: Time,
}

impl Aging {
    /// Returns the line of a job.
    pub(super) fn new(line: Line, submit: Time) -> Aging {
        Aging { line, submit }
    }

    /// Returns the line with one value at any time.
    pub(super) fn level(value: f64) -> Aging {
        Aging { line: Line::level(value), submit: Time::ZERO }
    }

    /// Returns the value at this time.
    #[inline]
    pub(super) fn at(self, now: Time) -> f64 {
        self.line.at((now - self.submit).as_secs_f64())
    }

    /// Returns the rank at this time: no job of the line ranks before it.
    #[inline]
    pub(super) fn rank(self, now: Time) -> i64 {
        rank(self.at(now))
    }

    /// Returns a line above this one, by more than errors of rounding.
    pub(super) fn raised(self) -> Aging {
        Aging { line: self.line.raised(), ..self }
    }

    /// Returns whether the other line is not above this one, and does not rise faster.
    pub(super) fn covers(self, other: Aging, now: Time) -> bool {
        self.at(now) >= other.at(now) && self.line.slope >= other.line.slope
    }

    /// Returns until when a line that is not above this one now stays so.
    pub(super) fn ahead_of(self, other: Aging, now: Time) -> Time {
        let rise = other.line.slope - self.line.slope;
        if rise <= 0.0 {
            return Time::from_ticks(i64::MAX);
        }
        let seconds = (self.at(now) - other.at(now)) / rise;
        // What is not a number becomes 0.
        #[allow(clippy::cast_possible_truncation)]
        let ticks = (seconds * TICKS).clamp(0.0, LONGEST) as i64;
        now + Span::from_ticks(ticks)
    }
}

/// The ticks in a second.
const TICKS: f64 = 1e6;

/// More ticks than any schedule lasts. A time this much later does not overflow.
const LONGEST: f64 = 1e17;

/// Returns the rank of a value: the largest comes first.
#[inline]
pub(super) fn rank(value: f64) -> i64 {
    Direction::Largest.rank(value)
}

/// Returns the line that is uppermost now, and until when it is.
pub(super) fn uppermost(lines: &[Aging], now: Time) -> Option<(Aging, Time)> {
    let mut first = *lines.first()?;
    let mut most = first.at(now);
    for line in &lines[1..] {
        let value = line.at(now);
        let order = value.total_cmp(&most).then(line.line.slope.total_cmp(&first.line.slope));
        if order.is_gt() {
            (first, most) = (*line, value);
        }
    }
    let until = lines.iter().filter(|line| line.line.slope > first.line.slope);
    let until = until.map(|line| first.ahead_of(*line, now)).min();
    Some((first, until.unwrap_or(Time::from_ticks(i64::MAX))))
}
