//! The change of a mean wait, in words.

use miserly_run::RunDoc;
use miserly_units::{duration_rounded, span_of_seconds};

/// The least time in seconds that a ratio is of.
const LEAST: f64 = 1.0;

/// The same, as a share of the mean runtime. The larger one decides.
const LEAST_OF_RUNTIME: f64 = 0.01;

/// A decrease in per cent that a rounded figure would show as 100 %.
const ALL: f64 = 99.5;

/// Two mean waits in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) value: f64,
    pub(super) baseline: f64,
    /// The least time that a ratio is of.
    pub(super) least: f64,
}

/// Returns the least wait that a ratio is of, beside the runtimes of this run.
pub(super) fn least_for_ratio(run: &RunDoc) -> f64 {
    let metrics = &run.metrics;
    let runtime =
        metrics.response.mean.zip(metrics.wait.mean).map_or(0.0, |(response, wait)| response - wait);
    LEAST.max(LEAST_OF_RUNTIME * runtime)
}

impl Change {
    /// Returns `35 % shorter`, `12 % longer` or `3.4 times as long`; `None` if a time is too short for a ratio, or if the
    /// ratio would be printed as 100 %.
    pub(super) fn ratio(self) -> Option<String> {
        let Change { value, baseline, least } = self;
        if value.min(baseline) < least {
            return None;
        }
        if value > 2.0 * baseline {
            return Some(format!("{:.1} times as long", value / baseline));
        }
        let word = if value < baseline { "shorter" } else { "longer" };
        match 100.0 * (1.0 - value / baseline).abs() {
            percent if percent >= ALL && value < baseline => None,
            percent if percent < 0.05 => Some(format!("less than 0.1 % {word}")),
            percent if percent < 1.0 => Some(format!("{percent:.1} % {word}")),
            percent => Some(format!("{percent:.0} % {word}")),
        }
    }

    /// Returns `35 % shorter than`, or `3.4 times as long as`.
    pub(super) fn than(self) -> Option<String> {
        let ratio = self.ratio()?;
        let word = if ratio.ends_with("as long") { "as" } else { "than" };
        Some(format!("{ratio} {word}"))
    }
}

/// Returns a time in units for people.
pub(super) fn time(seconds: f64) -> String {
    duration_rounded(span_of_seconds(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: f64, baseline: f64, ratio: Option<&str>) {
        assert_eq!(Change { value, baseline, least: 1.0 }.ratio().as_deref(), ratio);
    }

    #[test]
    fn changes_are_in_per_cent_or_a_factor() {
        check(65.0, 100.0, Some("35 % shorter"));
        check(112.0, 100.0, Some("12 % longer"));
        check(99.5, 100.0, Some("0.5 % shorter"));
        check(99.99, 100.0, Some("less than 0.1 % shorter"));
        check(300.0, 100.0, Some("3.0 times as long"));
        let than = |value| Change { value, baseline: 100.0, least: 1.0 }.than();
        assert_eq!(than(300.0).as_deref(), Some("3.0 times as long as"));
        assert_eq!(than(65.0).as_deref(), Some("35 % shorter than"));
    }

    #[test]
    fn no_ratio_of_times_that_are_nothing() {
        check(0.0, 3.0, None);
        check(5.0, 0.0, None);
        check(0.9, 100.0, None);
        check(1.0, 100.0, Some("99 % shorter"));
        check(1.0, 300.0, None);
    }
}
