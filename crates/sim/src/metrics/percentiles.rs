//! Nearest-rank percentiles: exact up to a million values, a sketch of stated error beyond.

use std::collections::BTreeMap;

/// The largest number of values that are held. Up to it, percentiles are exact.
pub const EXACT_MOST: usize = 1_000_000;

/// The relative error of the sketch: half the width of a bucket, which is 2^-10 of its value.
pub const SKETCH_ERROR: f64 = 1.0 / 2048.0;

/// The bits of a number that a bucket ignores: all but the exponent and the first ten bits of the
/// fraction.
const DROPPED_BITS: u32 = 52 - 10;

/// The values of a measure, 0 or more, or a histogram with buckets proportional to their values.
#[derive(Clone, Debug)]
pub struct Percentiles {
    exact: Vec<f64>,
    /// Counts by the leading bits of the value, used once there are too many values to hold.
    buckets: BTreeMap<u64, u64>,
    sketched: bool,
    count: u64,
    max: f64,
}

impl Default for Percentiles {
    fn default() -> Percentiles {
        Percentiles::new()
    }
}

impl Percentiles {
    /// Returns an accumulator without values.
    pub const fn new() -> Percentiles {
        Percentiles { exact: Vec::new(), buckets: BTreeMap::new(), sketched: false, count: 0, max: 0.0 }
    }

    /// Adds a value, 0 or more.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        self.max = self.max.max(value);
        if self.is_exact() && self.exact.len() < EXACT_MOST {
            self.exact.push(value);
            return;
        }
        self.sketch();
        *self.buckets.entry(bucket(value)).or_default() += 1;
    }

    /// Returns whether every value is still held.
    pub fn is_exact(&self) -> bool {
        !self.sketched
    }

    /// Returns the value of rank ceil(n * percent / 100), or `None` without values.
    pub fn percentile(&mut self, percent: u64) -> Option<f64> {
        let [value] = self.percentiles([percent]);
        value
    }

    /// Returns the values of several ranks, which must ascend. Each is searched for only above the
    /// one before.
    pub fn percentiles<const N: usize>(&mut self, percents: [u64; N]) -> [Option<f64>; N] {
        let mut from = 0;
        percents.map(|percent| {
            let rank = rank(self.count, percent, 100)?;
            if !self.is_exact() {
                return self.sketched(rank);
            }
            let index = usize::try_from(rank - 1).ok()?;
            let above = self.exact.get_mut(from..).filter(|_| index >= from)?;
            let value = *above.select_nth_unstable_by(index - from, f64::total_cmp).1;
            from = index;
            Some(value)
        })
    }

    fn sketched(&self, rank: u64) -> Option<f64> {
        let mut below = 0;
        self.buckets.iter().find_map(|(&bucket, &count)| {
            below += count;
            (below >= rank).then(|| middle(bucket).min(self.max))
        })
    }

    /// Returns the largest value, always exact.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }

    /// Returns the cumulative distribution: the value of each rank, and its share.
    ///
    /// The shares are 1 %, 2 % and so on to 99 %, 99.9 % and 100 %.
    pub fn cdf(&mut self) -> Vec<(f64, f64)> {
        self.exact.sort_unstable_by(f64::total_cmp);
        let shares = (1..100).map(|percent| 10 * percent).chain([999, 1000]);
        shares
            .filter_map(|thousandths| Some((self.ranked(thousandths)?, thousandths as f64 / 1000.0)))
            .collect()
    }

    /// Returns the value of rank ceil(n * thousandths / 1000). The held values must be sorted.
    fn ranked(&self, thousandths: u64) -> Option<f64> {
        let rank = rank(self.count, thousandths, 1000)?;
        if self.is_exact() {
            self.exact.get(usize::try_from(rank - 1).ok()?).copied()
        } else {
            self.sketched(rank)
        }
    }

    /// Replaces the held values by a histogram.
    pub fn sketch(&mut self) {
        self.sketched = true;
        for value in std::mem::take(&mut self.exact) {
            *self.buckets.entry(bucket(value)).or_default() += 1;
        }
    }
}

/// Returns the rank ceil(count * part / whole), from 1, or `None` without values.
fn rank(count: u64, part: u64, whole: u64) -> Option<u64> {
    let rank = (u128::from(count) * u128::from(part)).div_ceil(u128::from(whole)).max(1);
    // No larger than the count.
    u64::try_from(rank).ok().filter(|_| count > 0)
}

/// Returns the bucket of a value. Numbers of 0 or more have the order of their bits.
fn bucket(value: f64) -> u64 {
    value.to_bits() >> DROPPED_BITS
}

fn middle(bucket: u64) -> f64 {
    match bucket {
        0 => 0.0,
        _ => f64::from_bits((bucket << DROPPED_BITS) | (1 << (DROPPED_BITS - 1))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sketch_is_within_its_error() {
        let mut sketch = Percentiles::new();
        let total: u32 = 1_200_000;
        for i in 0..total {
            // A permutation of 0..total, so that the true percentiles are known.
            sketch.add(f64::from((i * 7) % total));
        }
        assert!(!sketch.is_exact());
        for percent in [1, 50, 95, 99, 100] {
            let truth = f64::from(total) * percent as f64 / 100.0 - 1.0;
            let got = sketch.percentile(percent).unwrap();
            assert!((got - truth).abs() <= truth * SKETCH_ERROR, "{percent}: {got} for {truth}");
        }
        assert_eq!(sketch.max(), Some(f64::from(total - 1)));
    }

    #[test]
    fn a_cdf_has_the_nearest_ranks() {
        let mut values = Percentiles::new();
        for value in (1..=1000u32).rev() {
            values.add(f64::from(value));
        }
        let cdf = values.cdf();
        assert_eq!(cdf.len(), 101);
        for (value, share) in cdf {
            assert!((value / 1000.0 - share).abs() < 1e-12, "{value} at {share}");
        }
        assert_eq!(Percentiles::new().cdf(), vec![]);
    }
}
