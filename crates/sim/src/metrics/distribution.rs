//! One measure over many jobs: its exact mean, and its percentiles.

use miserly_core::Span;

use super::percentiles::Percentiles;

/// Ratios are summed in units of 2^-32.
const RATIO_UNIT: f64 = 4_294_967_296.0;

/// Spans are summed in ticks.
pub(super) const TICKS_PER_SECOND: f64 = 1_000_000.0;

/// An accumulator of one measure.
///
/// The sum is an integer (of ticks, or of 2^-32 of a ratio), so the mean does not depend on the
/// order.
#[derive(Clone, Debug)]
pub struct Distribution {
    unit: f64,
    count: u64,
    sum: u128,
    values: Percentiles,
}

/// The published figures of a measure; `None` without values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// The arithmetic mean.
    pub mean: Option<f64>,
    /// The nearest-rank median.
    pub median: Option<f64>,
    /// The nearest-rank 95th percentile.
    pub p95: Option<f64>,
    /// The nearest-rank 99th percentile.
    pub p99: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
}

impl Distribution {
    /// Returns an empty distribution of time spans, shown in seconds.
    pub fn of_spans() -> Distribution {
        Distribution { unit: TICKS_PER_SECOND, count: 0, sum: 0, values: Percentiles::new() }
    }

    /// Returns an empty distribution of ratios.
    pub fn of_ratios() -> Distribution {
        Distribution { unit: RATIO_UNIT, ..Distribution::of_spans() }
    }

    /// Adds a time span, 0 or more, and returns it in units of the sum.
    pub fn add_span(&mut self, span: Span) -> u128 {
        self.add(u128::from(span.ticks().unsigned_abs()), span.as_secs_f64())
    }

    /// Adds a ratio, 0 or more, and returns it in units of the sum.
    pub fn add_ratio(&mut self, ratio: f64) -> u128 {
        self.add(fixed(ratio), ratio)
    }

    fn add(&mut self, amount: u128, value: f64) -> u128 {
        self.count += 1;
        self.sum += amount;
        self.values.add(value);
        amount
    }

    /// Returns the number of units of the sum in one second, or in a ratio of one.
    pub fn unit(&self) -> f64 {
        self.unit
    }

    /// Returns the value of rank ceil(n * percent / 100), or `None` without values.
    pub fn percentile(&mut self, percent: u64) -> Option<f64> {
        self.values.percentile(percent)
    }

    /// Returns the cumulative distribution: values and the share of all at or below them, at fixed
    /// shares.
    pub fn cdf(&mut self) -> Vec<(f64, f64)> {
        self.values.cdf()
    }

    /// Returns the number of added values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether the percentiles are exact; else they are within
    /// [`SKETCH_ERROR`](super::SKETCH_ERROR).
    pub fn is_exact(&self) -> bool {
        self.values.is_exact()
    }

    /// Replaces the stored values by a histogram: the percentiles are within
    /// [`SKETCH_ERROR`](super::SKETCH_ERROR).
    pub(super) fn sketch(&mut self) {
        self.values.sketch();
    }

    /// Returns the published figures. O(n) in the number of values held.
    pub fn summary(&mut self) -> Summary {
        if self.count == 0 {
            return Summary::default();
        }
        let mean = Some(self.sum as f64 / self.unit / self.count as f64);
        let [median, p95, p99] = self.values.percentiles([50, 95, 99]);
        Summary { mean, median, p95, p99, max: self.values.max() }
    }
}

/// Returns the ratio in units of 2^-32, rounded to the nearest.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn fixed(ratio: f64) -> u128 {
    let scaled = ratio * RATIO_UNIT;
    if scaled < 9.0e15 {
        // Fractions of numbers of this size are exact, and this is faster than a call of `round`.
        let whole = scaled as u64;
        return u128::from(whole + u64::from(scaled - whole as f64 >= 0.5));
    }
    // The cast saturates.
    scaled.round() as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_rounded_to_the_nearest_unit() {
        for ratio in
            [0.0, 1.0, 2.5 / RATIO_UNIT, 2.499_999 / RATIO_UNIT, 1.0 / 3.0, 2.0 / 3.0, 1e6 / 7.0, 1e7]
        {
            assert!((fixed(ratio) as f64 - (ratio * RATIO_UNIT).round()).abs() < 0.1, "{ratio}");
        }
    }

    #[test]
    fn nearest_rank() {
        let mut spans = Distribution::of_spans();
        for secs in [15, 20, 35, 40, 50] {
            spans.add_span(Span::from_secs(secs).unwrap());
        }
        let summary = spans.summary();
        assert_eq!(summary.mean, Some(32.0));
        assert_eq!((summary.median, summary.p95, summary.max), (Some(35.0), Some(50.0), Some(50.0)));
        assert_eq!(Distribution::of_spans().summary(), Summary::default());
    }
}
