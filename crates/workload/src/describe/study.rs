//! The runtimes, and what users think of them beforehand: the study of Zotkin, Keleher, Perkovic 2000, §3 and §7.

use super::spread::{Common, Share, Tally, nearest_rank};

/// How many of the commonest estimates the study keeps (Figure 11).
const COMMON_ESTIMATES: usize = 20;

/// A distribution is told at this many shares at most.
const STEPS: u64 = 200;

/// Bins of runtimes are this wide, seconds.
const BIN: u64 = 600;

/// All runtimes from here on are one bin, seconds.
const LONG: u64 = 86_400;

/// A distribution: values, ascending, each with the share of the jobs that have it or less.
pub type Cdf = Vec<(u64, f64)>;

/// Jobs by their runtimes and estimates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Study {
    /// Estimates that are multiples of 5 minutes up to an hour, or of an hour above, out of those known.
    pub round: Share,
    /// The commonest estimates, in seconds.
    pub estimates: Vec<Common>,
    /// The runtimes in bins of ten minutes; the last one is all from a day on. Bins without jobs are there.
    pub runtime_histogram: Vec<Bin>,
    /// The runtimes, in seconds.
    pub runtimes: Cdf,
    /// The estimates, in seconds.
    pub estimated: Cdf,
    /// Estimates and runtimes of the jobs of which both are known, in seconds, sorted.
    pairs: Vec<(u64, u64)>,
}

/// Jobs whose runtime is in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// The least runtime, seconds.
    pub from: u64,
    /// Where the next bin begins, seconds.
    pub to: u64,
    /// How many jobs.
    pub jobs: u64,
}

/// The jobs of one estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct OfEstimate {
    /// The estimate, seconds.
    pub estimate: u64,
    /// How many jobs have it, and a runtime.
    pub jobs: u64,
    /// Their runtimes, seconds.
    pub runtimes: Cdf,
    /// How many times too long the estimate is, estimate / max(runtime, 1 s): the median.
    pub median: Option<f64>,
    /// Its 80th percentile.
    pub p80: Option<f64>,
    /// The most.
    pub max: Option<f64>,
}

impl Study {
    /// From counts of runtimes and of estimates, and the pairs of both, in any order.
    pub(super) fn new(runtimes: &Tally, estimates: &Tally, mut pairs: Vec<(u64, u64)>) -> Study {
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

    /// The jobs that are estimated at so many seconds. O(log n) to find them.
    pub fn of_estimate(&self, estimate: u64) -> OfEstimate {
        let from = self.pairs.partition_point(|pair| pair.0 < estimate);
        let jobs = &self.pairs[from..];
        let jobs = &jobs[..jobs.partition_point(|pair| pair.0 == estimate)];
        let count = jobs.len() as u64;
        // The runtimes ascend, so the factors descend.
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

fn histogram(runtimes: &Tally) -> Vec<Bin> {
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

/// The distribution of values, each counted once.
pub(super) fn cdf_of(values: impl Iterator<Item = u64>) -> Cdf {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    let of = values.len() as u64;
    cdf(values.into_iter().map(|value| (value, 1)), of)
}

/// The distribution of ascending values with their counts: each value at which the share passes a multiple of
/// 1 / [`STEPS`], with its exact share.
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

    fn tally(values: impl Iterator<Item = u64>) -> Tally {
        let mut tally = Tally::default();
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
        assert_eq!(study.round, Share { count: 4, of: 7 });
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
                prop_assert!(points.iter().all(|&(value, told)| (told - share(value)).abs() < 1e-12));
                prop_assert!(points.last().unwrap().1 >= 1.0);
                // Between two points the share rises by less than a step, beyond the value's own jump.
                for pair in points.windows(2) {
                    let before = values.iter().filter(|&&value| value < pair[1].0).count() as f64 / values.len() as f64;
                    prop_assert!(before - pair[0].1 <= 1.0 / STEPS as f64 + 1e-12);
                }
            }
        }
    }
}
