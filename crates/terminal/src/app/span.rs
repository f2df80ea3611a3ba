//! The time of the chart.

use miserly_view::whole_step;

use crate::MINUTE;

/// The usual length of the chart.
const USUAL: i64 = 8 * 60 * MINUTE;

/// The shortest time of a chart, and the longest one.
const LIMITS: (i64, i64) = (4 * MINUTE, 128 * 24 * 60 * MINUTE);

/// The part of time that the chart shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Its length, milliseconds.
    length: i64,
    /// The length at which a key moves by a step of the replay, milliseconds.
    usual: i64,
    /// How far it is moved into the future, milliseconds.
    shift: i64,
}

impl Default for Span {
    /// Returns the time from two hours ago to six hours ahead.
    fn default() -> Span {
        Span { length: USUAL, usual: USUAL, shift: 0 }
    }
}

impl Span {
    /// Returns the time of a replay: four of its steps or more, so that a step does not leave what is shown.
    pub(crate) fn of_replay(step: i64) -> Span {
        let usual = step.saturating_mul(4).clamp(USUAL, LIMITS.1);
        Span { length: usual, usual, shift: 0 }
    }

    /// Returns the begin at an instant, and the time of each of `columns` columns.
    pub(crate) fn columns(self, now: i64, columns: usize) -> (i64, i64) {
        let columns = i64::try_from(columns.max(1)).unwrap_or(i64::MAX);
        let from = now.saturating_sub(self.length / 4).saturating_add(self.shift);
        (from, (self.length / columns).max(1))
    }

    /// Returns the step of a key, milliseconds.
    pub(crate) fn step(self) -> i64 {
        self.length / 8
    }

    /// Returns the step of a key that leads through the past, milliseconds: `step` at the usual length, and shorter or longer with
    /// the chart.
    pub(crate) fn past_step(self, step: i64) -> i64 {
        let longer = self.length / self.usual;
        let shorter = self.usual / self.length;
        whole_step(if longer > 0 { step.saturating_mul(longer) } else { step / shorter.max(1) })
    }

    /// Moves it by steps: into the future if `steps` is positive.
    pub(crate) fn scroll(&mut self, steps: i64) {
        let most = 8 * LIMITS.1;
        self.shift = self.shift.saturating_add(steps * self.step()).clamp(-most, most);
    }

    /// Halves it.
    pub(crate) fn zoom_in(&mut self) {
        self.set_length(self.length / 2);
    }

    /// Doubles it.
    pub(crate) fn zoom_out(&mut self) {
        self.set_length(self.length * 2);
    }

    /// Moves it back to the present.
    pub(crate) fn reset_shift(&mut self) {
        self.shift = 0;
    }

    fn set_length(&mut self, length: i64) {
        let length = length.clamp(LIMITS.0, LIMITS.1);
        // The middle stays, unless the present is shown in its usual place.
        if self.shift != 0 {
            self.shift += (self.length - length) / 4;
        }
        self.length = length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_two_hours_ago_to_six_hours_ahead() {
        let hour = 60 * MINUTE;
        assert_eq!(Span::default().columns(0, 80), (-2 * hour, hour / 10));
        let mut span = Span::default();
        span.scroll(1);
        assert_eq!(span.columns(0, 8), (-hour, hour));
        span.zoom_in();
        assert_eq!(span.columns(0, 8), (hour, hour / 2), "the middle is 3 h ahead, as before");
    }

    #[test]
    fn no_key_leads_beyond_the_limits() {
        let mut span = Span::default();
        for _ in 0..100 {
            span.zoom_out();
            span.scroll(1000);
        }
        assert_eq!(span.length, LIMITS.1);
        for _ in 0..100 {
            span.zoom_in();
            span.scroll(-1000);
        }
        assert_eq!(span.length, LIMITS.0);
        assert!(span.columns(0, 0).1 > 0);
    }
}
