//! The number of jobs and the runtimes of each size (Feitelson 1996, §3.1 and §3.2).

use std::collections::BTreeMap;

use miserly_core::Procs;

/// Number of buckets of the parallel jobs (§3.2).
pub const BUCKETS: u64 = 10;

/// The jobs of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfSize {
    /// Processors per job.
    pub procs: Procs,
    /// Number of jobs.
    pub jobs: u64,
    /// Jobs with a known runtime.
    pub timed: u64,
    /// Sum of the known runtimes in seconds.
    pub seconds: u128,
}

impl OfSize {
    /// Returns the mean known runtime in seconds, or `None` if none is known.
    pub fn mean_runtime(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.seconds as f64 / self.timed as f64)
    }

    /// Returns the processor-seconds of jobs with a known runtime.
    pub fn work(&self) -> u128 {
        u128::from(self.procs) * self.seconds
    }

    /// Returns whether the jobs have more than one processor.
    pub fn is_parallel(&self) -> bool {
        self.procs > Procs::ONE
    }
}

/// A tenth of the parallel jobs in order of size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeBucket {
    /// Number of jobs.
    pub jobs: u64,
    /// Mean size in processors.
    pub mean_procs: f64,
    /// Mean runtime in seconds.
    pub mean_runtime: f64,
}

/// A counter of jobs by size.
#[derive(Default)]
pub(super) struct SizeCounter(BTreeMap<Procs, OfSize>);

impl SizeCounter {
    pub(super) fn add(&mut self, procs: Procs, runtime: Option<u64>) {
        let of = self.0.entry(procs).or_insert(OfSize { procs, ..OfSize::default() });
        of.jobs += 1;
        of.timed += u64::from(runtime.is_some());
        of.seconds += u128::from(runtime.unwrap_or(0));
    }

    /// Returns the sizes that occur, ascending.
    pub(super) fn finish(self) -> Vec<OfSize> {
        self.0.into_values().collect()
    }
}

/// Divides the parallel jobs of known runtime, sorted by size, into [`BUCKETS`] equal buckets, to
/// within one job.
///
/// Jobs of equal size have no order. If they span two buckets, each bucket has its part at the mean
/// runtime of all of them. That equals the mean over all orders, so only sums per size are needed.
///
/// # Source
/// Feitelson 1996, §3.2 and Figure 5.
pub(super) fn buckets(sizes: &[OfSize]) -> Vec<SizeBucket> {
    let parallel: Vec<_> = sizes.iter().filter(|of| of.is_parallel() && of.timed > 0).collect();
    let jobs: u64 = parallel.iter().map(|of| of.timed).sum();
    let rank = |bucket: u64| u128::from(jobs) * u128::from(bucket) / u128::from(BUCKETS);
    let ranks = (0..BUCKETS).map(|bucket| (rank(bucket), rank(bucket + 1)));
    ranks.filter(|(from, to)| from < to).map(|ranks| bucket(&parallel, ranks)).collect()
}

/// Returns the bucket from one rank to below another, given ascending sizes.
fn bucket(sizes: &[&OfSize], (from, to): (u128, u128)) -> SizeBucket {
    let (mut below, mut procs, mut runtimes) = (0, 0, 0.0);
    for of in sizes {
        let end = below + u128::from(of.timed);
        let here = end.min(to).saturating_sub(from.max(below));
        procs += here * u128::from(of.procs);
        runtimes += here as f64 * of.mean_runtime().unwrap_or(0.0);
        below = end;
    }
    let jobs = to - from;
    SizeBucket {
        jobs: u64::try_from(jobs).unwrap_or(u64::MAX),
        mean_procs: procs as f64 / jobs as f64,
        mean_runtime: runtimes / jobs as f64,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counted(jobs: &[(u64, Option<u64>)]) -> Vec<OfSize> {
        let mut counter = SizeCounter::default();
        for &(procs, runtime) in jobs {
            counter.add(Procs::new(procs), runtime);
        }
        counter.finish()
    }

    /// Computes the same from a sorted list of single jobs, cut into ten lists.
    fn naive(jobs: &[(u64, Option<u64>)]) -> Vec<SizeBucket> {
        let mean_of = |size: u64| {
            let alike: Vec<u64> = jobs.iter().filter(|job| job.0 == size).filter_map(|job| job.1).collect();
            alike.iter().sum::<u64>() as f64 / alike.len() as f64
        };
        let mut sizes: Vec<u64> =
            jobs.iter().filter(|job| job.0 > 1 && job.1.is_some()).map(|job| job.0).collect();
        sizes.sort_unstable();
        let cut = |tenth: usize| sizes.len() * tenth / 10;
        let parts = (0..10).map(|tenth| &sizes[cut(tenth)..cut(tenth + 1)]);
        let bucket = |part: &[u64]| SizeBucket {
            jobs: part.len() as u64,
            mean_procs: part.iter().sum::<u64>() as f64 / part.len() as f64,
            mean_runtime: part.iter().map(|&size| mean_of(size)).sum::<f64>() / part.len() as f64,
        };
        parts.filter(|part| !part.is_empty()).map(bucket).collect()
    }

    proptest! {
        #[test]
        fn buckets_are_those_of_the_sorted_jobs(
            jobs in prop::collection::vec((1..20_u64, prop::option::weighted(0.9, 0..5_000_u64)), 0..200),
        ) {
            let (fast, slow) = (buckets(&counted(&jobs)), naive(&jobs));
            prop_assert_eq!(fast.len(), slow.len());
            for (fast, slow) in fast.iter().zip(&slow) {
                prop_assert_eq!(fast.jobs, slow.jobs);
                prop_assert!((fast.mean_procs - slow.mean_procs).abs() < 1e-9);
                prop_assert!((fast.mean_runtime - slow.mean_runtime).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn ten_jobs_are_ten_buckets_and_serial_ones_are_in_none() {
        let jobs: Vec<_> = (1..=11).map(|size| (size, Some(100 * size))).collect();
        let made = buckets(&counted(&jobs));
        assert_eq!(made.len(), 10);
        assert_eq!(made[0], SizeBucket { jobs: 1, mean_procs: 2.0, mean_runtime: 200.0 });
        assert_eq!(made[9], SizeBucket { jobs: 1, mean_procs: 11.0, mean_runtime: 1100.0 });
        assert!(buckets(&counted(&[(1, Some(5)), (4, None)])).is_empty());
    }

    #[test]
    fn a_size_in_two_buckets_is_in_both_at_its_mean() {
        // Twenty jobs of one size and two runtimes: all parts are equal, wherever they are cut.
        let jobs: Vec<_> = (0..20).map(|at| (4, Some(if at < 10 { 0 } else { 60 }))).collect();
        let made = buckets(&counted(&jobs));
        assert!(
            made.iter().all(|bucket| *bucket == SizeBucket { jobs: 2, mean_procs: 4.0, mean_runtime: 30.0 })
        );
    }
}
