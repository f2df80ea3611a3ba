//! Nearest-rank percentiles: exact up to a million values, a sketch of stated error beyond.

use std::collections::VecDeque;

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
    /// The bits of each value. Numbers of 0 or more have the order of their bits, and integers are compared faster.
    exact: Vec<u64>,
    /// The histogram, used once there are too many values to hold.
    buckets: Buckets,
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
        Percentiles { exact: Vec::new(), buckets: Buckets::EMPTY, sketched: false, count: 0, max: 0.0 }
    }

    /// Adds a value, 0 or more.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        self.max = self.max.max(value);
        if self.is_exact() && self.exact.len() < EXACT_MOST {
            self.exact.push(value.to_bits());
            return;
        }
        self.sketch();
        self.buckets.add(bucket(value.to_bits()));
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
            let value = *above.select_nth_unstable(index - from).1;
            from = index;
            Some(f64::from_bits(value))
        })
    }

    fn sketched(&self, rank: u64) -> Option<f64> {
        self.buckets.ranked(rank).map(|bucket| middle(bucket).min(self.max))
    }

    /// Returns the largest value, always exact.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }

    /// Returns the cumulative distribution: the value of each rank, and its share.
    ///
    /// The shares are 1 %, 2 % and so on to 99 %, 99.9 % and 100 %.
    pub fn cdf(&mut self) -> Vec<(f64, f64)> {
        self.exact.sort_unstable();
        let shares = (1..100).map(|percent| 10 * percent).chain([999, 1000]);
        shares
            .filter_map(|thousandths| Some((self.ranked(thousandths)?, thousandths as f64 / 1000.0)))
            .collect()
    }

    /// Returns the value of rank ceil(n * thousandths / 1000). The held values must be sorted.
    fn ranked(&self, thousandths: u64) -> Option<f64> {
        let rank = rank(self.count, thousandths, 1000)?;
        if self.is_exact() {
            self.exact.get(usize::try_from(rank - 1).ok()?).copied().map(f64::from_bits)
        } else {
            self.sketched(rank)
        }
    }

    /// Replaces the held values by a histogram.
    pub fn sketch(&mut self) {
        self.sketched = true;
        for bits in std::mem::take(&mut self.exact) {
            self.buckets.add(bucket(bits));
        }
    }
}

/// Returns the rank ceil(count * part / whole), from 1, or `None` without values.
fn rank(count: u64, part: u64, whole: u64) -> Option<u64> {
    let rank = (u128::from(count) * u128::from(part)).div_ceil(u128::from(whole)).max(1);
    // No larger than the count.
    u64::try_from(rank).ok().filter(|_| count > 0)
}

/// Returns the bucket of the value with these bits.
fn bucket(bits: u64) -> u64 {
    bits >> DROPPED_BITS
}

/// The number of values in each bucket: an array from the lowest bucket in use to the highest one.
#[derive(Clone, Debug)]
struct Buckets {
    /// Values in bucket 0, which is far below that of any other value of a measure.
    zeros: u64,
    /// The bucket of the first count.
    lowest: u64,
    counts: VecDeque<u64>,
}

impl Buckets {
    const EMPTY: Buckets = Buckets { zeros: 0, lowest: 0, counts: VecDeque::new() };

    fn add(&mut self, bucket: u64) {
        if bucket == 0 {
            self.zeros += 1;
            return;
        }
        let place = bucket.checked_sub(self.lowest).and_then(|place| usize::try_from(place).ok());
        match place.and_then(|place| self.counts.get_mut(place)) {
            Some(count) => *count += 1,
            None => self.add_outside(bucket),
        }
    }

    /// Adds a value below or above all others but zeros.
    fn add_outside(&mut self, bucket: u64) {
        if self.counts.is_empty() {
            self.lowest = bucket;
        }
        while bucket < self.lowest {
            self.counts.push_front(0);
            self.lowest -= 1;
        }
        while bucket - self.lowest >= self.counts.len() as u64 {
            self.counts.push_back(0);
        }
        self.add(bucket);
    }

    /// Returns the bucket of the value of this rank, from 1.
    fn ranked(&self, rank: u64) -> Option<u64> {
        let mut below = self.zeros;
        if below >= rank {
            return Some(0);
        }
        let counts = (self.lowest..).zip(&self.counts);
        counts.into_iter().find_map(|(bucket, count)| {
            below += count;
            (below >= rank).then_some(bucket)
        })
    }
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
    fn buckets_grow_on_both_sides_and_keep_zeros_apart() {
        let mut buckets = Buckets::EMPTY;
        for bucket in [1_000, 0, 1_003, 990, 0, 1_000] {
            buckets.add(bucket);
        }
        let ranked: Vec<_> = (1..=7).map(|rank| buckets.ranked(rank)).collect();
        let expect = [Some(0), Some(0), Some(990), Some(1_000), Some(1_000), Some(1_003), None];
        assert_eq!(ranked, expect);
        assert_eq!(buckets.counts.len(), 14);
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
