//! Runtimes compared with the users' estimates: Zotkin, Keleher, Perkovic 2000, §3 and §7.

use super::spread::{Common, Proportion, ValueCounts, nearest_rank};

/// Number of commonest estimates (Figure 11).
const COMMON_ESTIMATES: usize = 20;

/// Maximum number of points of a distribution.
const STEPS: u64 = 200;

/// Width of a bin of runtimes in seconds.
const BIN: u64 = 600;

/// Lower bound of the last bin of runtimes in seconds.
const LONG: u64 = 86_400;

/// A distribution: ascending values with the share of jobs at or below them.
pub type Cdf = Vec<(u64, f64)>;

/// Jobs by runtime and estimate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Study {
    /// Multiples of 5 minutes up to an hour, or of an hour above, out of the known estimates.
    pub round: Proportion,
    /// Commonest estimates in seconds.
    pub estimates: Vec<Common>,
    /// Runtimes in bins of ten minutes, including empty bins. The last bin holds all from a day on.
    pub runtime_histogram: Vec<Bin>,
    /// Runtimes in seconds.
    pub runtimes: Cdf,
    /// Estimates in seconds.
    pub estimated: Cdf,
    /// Sorted estimates and runtimes in seconds of the jobs with both known.
    pairs: Vec<(u64, u64)>,
}

/// The jobs with a runtime in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// Least runtime in seconds.
    pub from: u64,
    /// Upper bound in seconds, excluded.
    pub to: u64,
    /// Number of jobs.
    pub jobs: u64,
}

/// The jobs of one estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct OfEstimate {
    /// Estimate in seconds.
    pub estimate: u64,
    /// Number of jobs with this estimate and a runtime.
    pub jobs: u64,
    /// Runtimes in seconds.
    pub runtimes: Cdf,
    /// Median of the overestimation: estimate / max(runtime, 1 s).
    pub median: Option<f64>,
    /// Its 80th percentile.
    pub p80: Option<f64>,
    /// Its maximum.
    pub max: Option<f64>,
}

impl Study {
    /// Creates the study from counts of runtimes and estimates, and unsorted pairs of both.
    pub(super) fn new(runtimes: &ValueCounts, estimates: &ValueCounts, mut pairs: Vec<(u64, u64)>) -> Study {
        pairs.sort_unstable();
        Study {
            round: estimates
                .share(|estimate| estimate % 3_600 == 0 || (estimate < 3_600 && estimate % 300 == 0)),
            estimates: estimates.common(COMMON_ESTIMATES),
            runtime_histogram: histogram(runtimes),
            runtimes: cdf(runtimes.iter(), runtimes.count()),
            estimated: cdf(estimates.iter(), estimates.count()),
            pairs,
        }
    }

    /// Returns the jobs with an estimate in seconds. O(log n) to find them.
    pub fn of_estimate(&self, estimate: u64) -> OfEstimate {
        let from = self.pairs.partition_point(|pair| pair.0 < estimate);
        let jobs = &self.pairs[from..];
        let jobs = &jobs[..jobs.partition_point(|pair| pair.0 == estimate)];
        let count = jobs.len() as u64;
        // Runtimes ascend, so factors descend.
        let factor = |percent| {
            let rank = usize::try_from(nearest_rank(count, percent)).ok()?;
            let (_, runtime) = jobs.get(jobs.len().checked_sub(rank)?)?;
            Some(estimate as f64 / (*runtime).max(1) as f64)
        };
        OfEstimate {
            estimate,
            jobs: count,
            runtimes: cdf(jobs.iter().map(|&(_, runtime)| (runtime, 1)), count),
            median: factor(50),
            p80: factor(80),
            max: factor(100),
        }
    }
}

fn histogram(runtimes: &ValueCounts) -> Vec<Bin> {
    let Some(longest) = runtimes.iter().map(|(runtime, _)| runtime).last() else { return vec![] };
    let starts = (0..=longest.min(LONG)).step_by(usize::try_from(BIN).unwrap_or(1));
    let end = |from: u64| if from == LONG { longest + 1 } else { from + BIN };
    let mut bins: Vec<Bin> = starts.map(|from| Bin { from, to: end(from), jobs: 0 }).collect();
    for (runtime, jobs) in runtimes.iter() {
        let at = usize::try_from(runtime.min(LONG) / BIN).unwrap_or(usize::MAX);
        if let Some(bin) = bins.get_mut(at) {
            bin.jobs += jobs;
        }
    }
    bins
}

/// Returns the distribution of values.
pub(super) fn cdf_of(values: impl Iterator<Item = u64>) -> Cdf {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    let of = values.len() as u64;
    cdf(values.into_iter().map(|value| (value, 1)), of)
}

/// Returns the distribution of ascending values with their counts.
///
/// It has a point at each value whose share passes a multiple of 1 / [`STEPS`], with the exact
/// share.
fn cdf(values: impl Iterator<Item = (u64, u64)>, of: u64) -> Cdf {
    let mut points: Cdf = Vec::new();
    let (mut below, mut step) = (0, 0);
    for (value, count) in values {
        below += count;
        let reached = below * STEPS / of.max(1);
        let share = below as f64 / of as f64;
        match points.last_mut() {
            Some(last) if last.0 == value => last.1 = share,
            Some(_) if reached == step => {}
            _ => points.push((value, share)),
        }
        step = reached;
    }
    points
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tally(values: impl Iterator<Item = u64>) -> ValueCounts {
        let mut tally = ValueCounts::default();
        values.for_each(|value| tally.add(value));
        tally
    }

    fn study(jobs: &[(u64, u64)]) -> Study {
        let runtimes = tally(jobs.iter().map(|job| job.1));
        Study::new(&runtimes, &tally(jobs.iter().map(|job| job.0)), jobs.to_vec())
    }

    #[test]
    fn overestimation_by_nearest_rank() {
        let study = study(&[(900, 900), (900, 450), (900, 90), (900, 9), (900, 0), (7200, 60)]);
        let of = study.of_estimate(900);
        assert_eq!((of.jobs, of.median, of.p80, of.max), (5, Some(10.0), Some(100.0), Some(900.0)));
        assert_eq!(study.of_estimate(7200).median, Some(120.0));
        let none = study.of_estimate(1);
        assert_eq!((none.jobs, none.median, none.runtimes.len()), (0, None, 0));
    }

    #[test]
    fn round_estimates() {
        let study = study(&[(300, 1), (3_300, 1), (3_600, 1), (5_400, 1), (3_900, 1), (64_800, 1), (60, 1)]);
        assert_eq!(study.round, Proportion { count: 4, of: 7 });
    }

    #[test]
    fn bins_from_nothing_to_a_day_and_beyond() {
        let study = study(&[(1, 0), (1, 599), (1, 600), (1, 86_399), (1, 86_400), (1, 200_000)]);
        let bins = &study.runtime_histogram;
        assert_eq!(bins.len(), 145);
        assert_eq!((bins[0], bins[1].jobs), (Bin { from: 0, to: 600, jobs: 2 }, 1));
        assert_eq!(bins[143].jobs, 1);
        assert_eq!(bins[144], Bin { from: 86_400, to: 200_001, jobs: 2 });
    }

    proptest! {
        #[test]
        fn a_distribution_is_that_of_the_sorted_list(values in prop::collection::vec(0..3_000_u64, 1..600)) {
            let jobs: Vec<(u64, u64)> = values.iter().map(|&runtime| (1, runtime)).collect();
            let study = study(&jobs);
            let share = |at: u64| values.iter().filter(|&&value| value <= at).count() as f64 / values.len() as f64;
            for points in [&study.runtimes, &study.of_estimate(1).runtimes] {
                prop_assert!(points.len() <= 201 && points.is_sorted_by(|a, b| a.0 < b.0));
                prop_assert!(points.iter().all(|&(value, cumulated)| (cumulated - share(value)).abs() < 1e-12));
                prop_assert!(points.last().unwrap().1 >= 1.0);
                // Between two points the share rises by less than a step, besides the value's own
                // jump.
                for pair in points.windows(2) {
                    let before = values.iter().filter(|&&value| value < pair[1].0).count() as f64 / values.len() as f64;
                    prop_assert!(before - pair[0].1 <= 1.0 / STEPS as f64 + 1e-12);
                }
            }
        }
    }
}
