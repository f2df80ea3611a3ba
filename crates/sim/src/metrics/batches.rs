//! Batch means: the precision of a mean over jobs that influence each other.
//!
//! Neighbours in the order of submission meet the same queue, so their waits are strongly
//! correlated. The means of long batches are nearly independent, and Student's t applies to them.
//! If batches are short, or neighbouring batches correlated, an interval would be too narrow, and
//! none is given.

use super::measures::{Amounts, MEASURES};
use super::student;

/// The maximum number of batches. With as many jobs, there are more than half as many batches.
pub const BATCHES_MOST: usize = 64;

/// The least number of batches for which an interval is given.
pub const BATCHES_LEAST: usize = 10;

/// The least number of jobs in a batch for which an interval is given. One long job may fill
/// several smaller batches.
pub const BATCH_JOBS_LEAST: u64 = 64;

/// The correlation of neighbouring batches that may be due to chance: two standard errors of a
/// correlation.
const CHANCE: f64 = 2.0;

/// The sums of each measure over batches of jobs, by their position in the order of submission.
///
/// A batch holds 2^k jobs. As jobs arrive, k grows and neighbours are merged. Alternatively the
/// size is fixed, for any number of batches. Positions may also be those of another order.
#[derive(Clone, Debug)]
pub struct Batches {
    /// Jobs in a batch.
    size: u64,
    /// Whether the size is fixed.
    fixed: bool,
    /// The number of positions, including those of refused jobs.
    places: u64,
    sums: Vec<Batch>,
    units: [f64; MEASURES],
}

/// The sums over one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Batch {
    sums: [u128; MEASURES],
    counts: [u64; MEASURES],
}

/// A mean with its precision, from the batches.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// The mean of the batch means.
    pub mean: Option<f64>,
    /// Half the width of its 95 % confidence interval, or `None` if that would be unreliable.
    ///
    /// That is the case with fewer than [`BATCHES_LEAST`] batches, with fewer than
    /// [`BATCH_JOBS_LEAST`] jobs in one, or if neighbours are correlated beyond chance.
    pub half_width: Option<f64>,
    /// The correlation of each batch mean with the next, -1 to 1.
    ///
    /// `None` with fewer than [`BATCHES_LEAST`] batches, or if all have the same mean.
    pub autocorrelation: Option<f64>,
}

impl Interval {
    /// Returns whether the interval contains 0, so that the mean may be due to chance; `None` without an interval.
    pub fn within_noise(&self) -> Option<bool> {
        self.mean.zip(self.half_width).map(|(mean, half_width)| mean.abs() <= half_width)
    }
}

/// No batches.
impl Default for Batches {
    fn default() -> Batches {
        Batches::new([1.0; MEASURES])
    }
}

impl Batches {
    /// Returns empty batches. Sums are divided by `units`.
    pub fn new(units: [f64; MEASURES]) -> Batches {
        Batches { size: 1, fixed: false, places: 0, sums: Vec::new(), units }
    }

    /// Returns empty batches of fixed size, of at least one job.
    pub(super) fn of_size(size: u64, units: [f64; MEASURES]) -> Batches {
        Batches { size: size.max(1), fixed: true, ..Batches::new(units) }
    }

    /// Counts this number of positions, with or without jobs.
    pub(super) fn reach(&mut self, places: u64) {
        if places > 0 {
            self.make_room(places);
        }
    }

    /// Adds the job at a position in the order, from 0.
    pub(super) fn add(&mut self, place: u64, amounts: &Amounts) {
        self.make_room(place + 1);
        let batch = &mut self.sums[index(place, self.size)];
        for (measure, amount) in amounts.iter().enumerate() {
            batch.sums[measure] += amount.unwrap_or(0);
            batch.counts[measure] += u64::from(amount.is_some());
        }
    }

    /// Returns the number of jobs in a batch.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the number of full batches. An incomplete last batch is excluded from all results.
    pub fn full(&self) -> usize {
        index(self.places, self.size)
    }

    /// Returns the mean and the precision of a measure, given by its index in
    /// [`Measures::all`](super::Measures::all).
    pub fn interval(&self, measure: usize) -> Interval {
        interval(&self.means(measure).flatten().collect::<Vec<_>>(), self.fewest(measure))
    }

    /// Returns the same for the differences from another policy's run of the same jobs, by pairs of
    /// batches.
    ///
    /// Effects common to both runs cancel out.
    pub fn difference(&self, other: &Batches, measure: usize) -> Interval {
        if self.size != other.size {
            return Interval::default();
        }
        let pairs = self.means(measure).zip(other.means(measure));
        let differences: Vec<f64> = pairs.filter_map(|(mine, theirs)| Some(mine? - theirs?)).collect();
        interval(&differences, self.fewest(measure).min(other.fewest(measure)))
    }

    /// Returns the mean of a measure over each full batch, if any of its jobs has it.
    pub fn means(&self, measure: usize) -> impl Iterator<Item = Option<f64>> {
        self.sums.iter().take(self.full()).map(move |batch| {
            let count = batch.counts[measure];
            (count > 0).then(|| batch.sums[measure] as f64 / self.units[measure] / count as f64)
        })
    }

    /// Returns the fewest jobs with this measure in a full batch.
    ///
    /// That is less than the size if jobs were refused, or lack the measure.
    fn fewest(&self, measure: usize) -> u64 {
        self.sums.iter().take(self.full()).map(|batch| batch.counts[measure]).min().unwrap_or(0)
    }

    fn make_room(&mut self, places: u64) {
        if places <= self.places {
            return;
        }
        self.places = places;
        while !self.fixed && index(self.places - 1, self.size) >= BATCHES_MOST {
            self.halve();
        }
        let needed = index(self.places - 1, self.size) + 1;
        if self.sums.len() < needed {
            self.sums.resize(needed, Batch::default());
        }
    }

    /// Merges each two neighbouring batches.
    fn halve(&mut self) {
        self.size *= 2;
        for at in 0..self.sums.len().div_ceil(2) {
            let mut batch = self.sums[2 * at];
            if let Some(next) = self.sums.get(2 * at + 1) {
                batch.merge(next);
            }
            self.sums[at] = batch;
        }
        self.sums.truncate(self.sums.len().div_ceil(2));
    }
}

impl Batch {
    fn merge(&mut self, other: &Batch) {
        for measure in 0..MEASURES {
            self.sums[measure] += other.sums[measure];
            self.counts[measure] += other.counts[measure];
        }
    }
}

/// Returns the index of the batch of a position. Positions are many, but batches are few after
/// merging.
fn index(place: u64, size: u64) -> usize {
    usize::try_from(place / size).unwrap_or(usize::MAX)
}

/// Returns the mean and the precision of batch means. Each batch has at least `jobs` jobs.
pub fn interval(values: &[f64], jobs: u64) -> Interval {
    if values.is_empty() {
        return Interval::default();
    }
    let number = values.len() as f64;
    let mean = values.iter().sum::<f64>() / number;
    if values.len() < BATCHES_LEAST {
        return Interval { mean: Some(mean), ..Interval::default() };
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let together: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let error = (squares / (number - 1.0) / number).sqrt();
    let autocorrelation = (squares > 0.0).then(|| together / squares);
    let alike = autocorrelation.is_some_and(|correlation| correlation > CHANCE / number.sqrt());
    let trusted = jobs >= BATCH_JOBS_LEAST && !alike;
    Interval {
        mean: Some(mean),
        half_width: trusted.then(|| student::student_t_95(values.len() - 1) * error),
        autocorrelation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: [f64; MEASURES] = [1.0; MEASURES];

    fn amount(place: u64) -> u128 {
        u128::from(place * place % 101)
    }

    fn batches_of(places: impl Iterator<Item = u64>) -> Batches {
        let mut batches = Batches::new(UNITS);
        for place in places {
            let mut amounts = [Some(amount(place)); MEASURES];
            amounts[2] = amounts[2].filter(|_| place % 3 > 0);
            batches.add(place, &amounts);
        }
        batches
    }

    #[test]
    fn between_32_and_64_batches_with_the_means_of_their_jobs() {
        for jobs in [1, 5, 31, 32, 63, 64, 65, 127, 128, 129, 1000, 4096, 4097] {
            let batches = batches_of(0..jobs);
            let size = batches.size();
            assert!(jobs < 32 || (32..=64).contains(&batches.full()), "{jobs}: {}", batches.full());
            for (at, mean) in batches.means(0).enumerate() {
                let places = at as u64 * size..(at as u64 + 1) * size;
                let sum: u128 = places.map(amount).sum();
                assert_eq!(mean, Some(sum as f64 / size as f64));
            }
        }
    }

    #[test]
    fn the_order_of_jobs_does_not_show() {
        let state = |batches: &Batches| (batches.size(), batches.sums.clone(), batches.interval(2));
        assert_eq!(state(&batches_of((0..3000).rev())), state(&batches_of(0..3000)));
    }

    #[test]
    fn an_interval_by_hand() {
        let values = [1.0, 10.0, 2.0, 9.0, 3.0, 8.0, 4.0, 7.0, 5.0, 6.0];
        let found = interval(&values, 64);
        assert_eq!(found.mean, Some(5.5));
        // t(9) = 2.262157; the standard error is sqrt(82.5 / 9 / 10).
        let half_width = found.half_width.unwrap();
        assert!((half_width - 2.262_157 * (82.5f64 / 90.0).sqrt()).abs() < 1e-4, "{half_width}");
        // Deviations of 4.5, 3.5, ... alternate: -(4.5 x 4.5 + 4.5 x 3.5 + 3.5 x 3.5 + ... + 0.5 x
        // 0.5).
        assert_eq!(found.autocorrelation, Some(-70.25 / 82.5));
        assert_eq!(interval(&values[1..], 64), Interval { mean: Some(54.0 / 9.0), ..Interval::default() });
    }

    #[test]
    fn no_interval_of_short_batches_nor_where_neighbours_are_alike() {
        let alternating = [1.0, 10.0, 2.0, 9.0, 3.0, 8.0, 4.0, 7.0, 5.0, 6.0];
        let short = interval(&alternating, 63);
        assert_eq!(short, Interval { half_width: None, ..interval(&alternating, 64) });
        let rising: Vec<f64> = (1..=10u32).map(f64::from).collect();
        let alike = interval(&rising, 64);
        let expect = Interval { mean: Some(5.5), half_width: None, autocorrelation: Some(57.75 / 82.5) };
        assert_eq!(alike, expect);
    }

    #[test]
    fn places_without_a_job_are_places_all_the_same() {
        let there = |place: &u64| !place.is_multiple_of(3);
        let mut holes = Batches::new(UNITS);
        for place in (0..4096).filter(there) {
            holes.add(place, &[Some(amount(place)); MEASURES]);
        }
        // The last position has no job: the batches are those of 4095 positions, until all are
        // counted.
        assert_eq!((holes.full(), batches_of(0..4096).full()), (63, 64));
        holes.reach(4096);
        assert_eq!((holes.size(), holes.full()), (64, 64));
        let mean = |batch: u64| {
            let amounts: Vec<u128> = (64 * batch..64 * (batch + 1)).filter(there).map(amount).collect();
            Some(amounts.iter().sum::<u128>() as f64 / amounts.len() as f64)
        };
        assert!(holes.means(0).eq((0..64).map(mean)));
        // 42 or 43 jobs in each are too few, though there are 64 positions. Twice as many are
        // enough.
        assert_eq!((holes.fewest(0), holes.interval(0).half_width), (42, None));
        holes.reach(4097);
        assert_eq!((holes.size(), holes.fewest(0)), (128, 85));
        assert!(holes.interval(0).half_width.is_some());
    }

    #[test]
    fn a_trend_that_both_runs_share_leaves_their_difference_to_be_judged() {
        let (mut a, mut b) = (Batches::new(UNITS), Batches::new(UNITS));
        for place in 0..6400 {
            a.add(place, &[Some(u128::from(place) + amount(place)); MEASURES]);
            b.add(place, &[Some(u128::from(place)); MEASURES]);
        }
        assert_eq!(a.interval(0).half_width, None);
        assert!(a.difference(&b, 0).half_width.is_some());
    }

    #[test]
    fn what_hits_both_alike_is_not_in_the_difference() {
        let (mut a, mut b) = (Batches::new(UNITS), Batches::new(UNITS));
        for place in 0..6400 {
            a.add(place, &[Some(amount(place) + 3); MEASURES]);
            b.add(place, &[Some(amount(place)); MEASURES]);
        }
        let difference = a.difference(&b, 0);
        assert!((difference.mean.unwrap() - 3.0).abs() < 1e-9 && difference.half_width.unwrap() < 1e-9);
        assert!(a.interval(0).half_width.unwrap() > 0.1);
    }
}
