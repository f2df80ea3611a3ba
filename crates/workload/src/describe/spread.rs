//! Counts of values with percentiles, commonest values and shares.

use std::collections::BTreeMap;

/// Values below this are counted in an array: most runtimes, and all sizes of most machines.
const DENSE: u64 = 1 << 17;

/// A part of a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proportion {
    /// Size of the part.
    pub count: u64,
    /// Size of the whole.
    pub of: u64,
}

impl Proportion {
    /// Returns the fraction between 0 and 1, or `None` of an empty whole.
    pub fn fraction(self) -> Option<f64> {
        (self.of > 0).then(|| self.count as f64 / self.of as f64)
    }
}

/// A value with its frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    /// Value.
    pub value: u64,
    /// Jobs with this value, out of those with any.
    pub share: Proportion,
}

/// The distribution of values. Percentiles are exact, by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueSpread {
    /// Number of values.
    pub count: u64,
    /// Minimum.
    pub min: u64,
    /// 50th percentile.
    pub median: u64,
    /// Mean.
    pub mean: f64,
    /// 95th percentile.
    pub p95: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Maximum.
    pub max: u64,
}

/// The frequency of each value.
#[derive(Default)]
pub(crate) struct ValueCounts {
    dense: Vec<u64>,
    sparse: BTreeMap<u64, u64>,
    count: u64,
    sum: u128,
}

impl ValueCounts {
    pub(crate) fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        match usize::try_from(value) {
            Ok(index) if value < DENSE => {
                if self.dense.len() <= index {
                    self.dense.resize(index + 1, 0);
                }
                self.dense[index] += 1;
            }
            _ => *self.sparse.entry(value).or_default() += 1,
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the values with their counts, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let dense = (0..).zip(self.dense.iter().copied()).filter(|&(_, count)| count > 0);
        dense.chain(self.sparse.iter().map(|(&value, &count)| (value, count)))
    }

    pub(crate) fn distinct(&self) -> u64 {
        self.iter().fold(0, |distinct, _| distinct + 1)
    }

    /// Returns the share of values that meet a condition.
    pub(crate) fn share(&self, meets: impl Fn(u64) -> bool) -> Proportion {
        let count = self.iter().filter(|&(value, _)| meets(value)).map(|(_, count)| count).sum();
        Proportion { count, of: self.count }
    }

    /// Returns the `most` commonest values. Ties put the lesser value first.
    pub(crate) fn common(&self, most: usize) -> Vec<Common> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_by_key(|&(value, count)| (std::cmp::Reverse(count), value));
        all.truncate(most);
        let of = self.count;
        all.into_iter().map(|(value, count)| Common { value, share: Proportion { count, of } }).collect()
    }

    pub(crate) fn spread(&self) -> Option<ValueSpread> {
        let (min, _) = self.iter().next()?;
        let [median, p95, p99, max] = self.percentiles([50, 95, 99, 100]);
        let mean = self.sum as f64 / self.count as f64;
        Some(ValueSpread { count: self.count, min, median, mean, p95, p99, max })
    }

    /// Returns percentiles by nearest rank; `percents` must ascend.
    fn percentiles<const N: usize>(&self, percents: [u64; N]) -> [u64; N] {
        let mut values = self.iter();
        let (mut value, mut below) = (0, 0);
        percents.map(|percent| {
            let rank = nearest_rank(self.count, percent);
            while below < rank {
                let Some((next, count)) = values.next() else { break };
                value = next;
                below += count;
            }
            value
        })
    }
}

/// Returns the rank, from 1, of a percentile among `count` values.
pub(crate) fn nearest_rank(count: u64, percent: u64) -> u64 {
    let rank = (u128::from(count) * u128::from(percent)).div_ceil(100).max(1);
    u64::try_from(rank).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_a_sorted_list_has_it(mut values in prop::collection::vec(prop_oneof![0..50_u64, 0..300_000_u64], 1..200)) {
            let mut tally = ValueCounts::default();
            for &value in &values {
                tally.add(value);
            }
            values.sort_unstable();
            let spread = tally.spread().unwrap();
            let ranked = |percent: usize| values[((values.len() * percent).div_ceil(100)).max(1) - 1];
            prop_assert_eq!(
                (spread.min, spread.median, spread.p95, spread.p99, spread.max),
                (values[0], ranked(50), ranked(95), ranked(99), ranked(100))
            );
            values.dedup();
            prop_assert_eq!(tally.distinct(), values.len() as u64);
        }
    }

    #[test]
    fn commonest_first() {
        let mut tally = ValueCounts::default();
        for value in [5, 1, 5, 1, 7, 200_000, 200_000, 200_000] {
            tally.add(value);
        }
        let common: Vec<_> =
            tally.common(3).iter().map(|common| (common.value, common.share.count)).collect();
        assert_eq!(common, [(200_000, 3), (1, 2), (5, 2)]);
        assert_eq!(tally.share(|value| value == 7), Proportion { count: 1, of: 8 });
        assert!(ValueCounts::default().spread().is_none());
    }
}
