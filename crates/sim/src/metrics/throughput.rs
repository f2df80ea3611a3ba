//! The jobs that end in each hour.

use std::collections::BTreeMap;

use miserly_core::Time;

/// Ticks in an hour.
const HOUR: i64 = 3_600_000_000;

/// The number of jobs that ended in each hour of the log; hours without any are not stored.
#[derive(Clone, Debug, Default)]
pub(super) struct HourlyEnds {
    /// The hours before the present one changed.
    past: BTreeMap<i64, u64>,
    /// Number of the hour of the last end.
    hour: i64,
    /// The ends since that hour began to be the present one.
    jobs: u64,
}

impl HourlyEnds {
    /// Adds an end. Most are in the hour of the one before.
    pub(super) fn add(&mut self, end: Time) {
        let hour = end.ticks().div_euclid(HOUR);
        if hour != self.hour {
            self.pass();
            self.hour = hour;
        }
        self.jobs += 1;
    }

    fn pass(&mut self) {
        if self.jobs > 0 {
            *self.past.entry(self.hour).or_default() += std::mem::take(&mut self.jobs);
        }
    }

    /// Returns the standard deviation of the jobs per hour, over the whole hours of the log between two
    /// instants; `None` without a whole hour.
    pub(super) fn deviation(&self, from: Time, to: Time) -> Option<f64> {
        let (first, after) = ((from.ticks() + HOUR - 1).div_euclid(HOUR), to.ticks().div_euclid(HOUR));
        let hours = u64::try_from(after - first).ok().filter(|&hours| hours > 0)?;
        let mut all = self.clone();
        all.pass();
        let (mut sum, mut squares) = (0, 0);
        for jobs in all.past.range(first..after).map(|(_, jobs)| u128::from(*jobs)) {
            sum += jobs;
            squares += jobs * jobs;
        }
        let hours = u128::from(hours);
        // hours^2 times the variance, exactly.
        let variance = hours * squares - sum * sum;
        Some((variance as f64).sqrt() / hours as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hours 0 to 3 have 2, 1, 0 and 1 ends, in whatever order these come: the mean is 1, and the variance 1 / 2.
    #[test]
    fn ends_in_any_order() {
        let at = |second| Time::from_secs(second).unwrap();
        for order in [[0, 1, 3_600, 10_800], [3_600, 0, 10_800, 1], [10_800, 3_600, 1, 0]] {
            let mut ends = HourlyEnds::default();
            for second in order {
                ends.add(at(second));
            }
            assert_eq!(ends.deviation(Time::ZERO, at(4 * 3_600)), Some(0.5_f64.sqrt()), "{order:?}");
        }
        let mut ends = HourlyEnds::default();
        (0..3_600).for_each(|second| ends.add(at(second)));
        assert!(ends.past.is_empty(), "no work for an end in the present hour");
    }
}
