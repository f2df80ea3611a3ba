//! The jobs that end in each hour.

use std::collections::BTreeMap;

use miserly_core::Time;

/// Ticks in an hour.
const HOUR: i64 = 3_600_000_000;

/// The number of jobs that ended in each hour of the log; hours without any are not stored.
#[derive(Clone, Debug, Default)]
pub(super) struct HourlyEnds(BTreeMap<i64, u64>);

impl HourlyEnds {
    pub(super) fn add(&mut self, end: Time) {
        *self.0.entry(end.ticks().div_euclid(HOUR)).or_default() += 1;
    }

    /// Returns the standard deviation of the jobs per hour, over the whole hours of the log between two
    /// instants; `None` without a whole hour.
    pub(super) fn deviation(&self, from: Time, to: Time) -> Option<f64> {
        let (first, after) = ((from.ticks() + HOUR - 1).div_euclid(HOUR), to.ticks().div_euclid(HOUR));
        let hours = u64::try_from(after - first).ok().filter(|&hours| hours > 0)?;
        let (mut sum, mut squares) = (0, 0);
        for jobs in self.0.range(first..after).map(|(_, jobs)| u128::from(*jobs)) {
            sum += jobs;
            squares += jobs * jobs;
        }
        let hours = u128::from(hours);
        // hours^2 times the variance, exactly.
        let variance = hours * squares - sum * sum;
        Some((variance as f64).sqrt() / hours as f64)
    }
}
