//! Batch means: the precision of a mean over jobs that influence each other.
//!
//! Neighbours in the order of submission meet the same queue, so their waits are strongly
//! correlated. The means of long batches are nearly independent, and Student's t applies to them.
//! If batches are short, or neighbouring batches correlated, an interval would be too narrow, and
//! none is given.

use super::measures::MEASURES;
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
pub struct Batches<const N: usize = MEASURES> {
    /// Jobs in a batch.
    size: u64,
    /// Whether the size is fixed.
    fixed: bool,
    /// The number of positions, including those of refused jobs.
    places: u64,
    sums: Vec<Batch<N>>,
    units: [f64; N],
}

/// The sums over one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Batch<const N: usize> {
    sums: [u128; N],
    counts: [u64; N],
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
impl<const N: usize> Default for Batches<N> {
    fn default() -> Batches<N> {
        Batches::new([1.0; N])
    }
}

impl<const N: usize> Batches<N> {
    /// Returns empty batches. Sums are divided by `units`.
    pub fn new(units: [f64; N]) -> Batches<N> {
        Batches { size: 1, fixed: false, places: 0, sums: Vec::new(), units }
    }

    /// Returns empty batches of fixed size, of at least one job.
    pub(super) fn of_size(size: u64, units: [f64; N]) -> Batches<N> {
        Batches { size: size.max(1), fixed: true, ..Batches::new(units) }
    }

    /// Counts this number of positions, with or without jobs.
    pub(super) fn reach(&mut self, places: u64) {
        if places > 0 {
            self.make_room(places);
        }
    }

    /// Adds the job at a position in the order, from 0.
    pub(super) fn add(&mut self, place: u64, amounts: &[Option<u128>; N]) {
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
    pub fn difference(&self, other: &Batches<N>, measure: usize) -> Interval {
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

    /// Returns the difference of a group of jobs from its mean in another policy's run of the same jobs, for the first
    /// measure of the group.
    ///
    /// `self` and `other` are the batches of all jobs of the runs, `groups` those of the group in either run. A batch counts
    /// by the number of its jobs that are in the group. With `tested` groups, all their intervals hold together with 95 %
    /// (Bonferroni).
    pub fn group_difference(&self, other: &Batches<N>, groups: [&Batches<1>; 2], tested: usize) -> Interval {
        let [mine, theirs] = groups.map(|group| {
            let mut group = group.clone();
            group.reach(self.places);
            group
        });
        let sizes = [other.size, mine.size, theirs.size].map(|size| size == self.size);
        if sizes.contains(&false) || self.places != other.places {
            return Interval::default();
        }
        let pairs = mine.sums.iter().zip(&theirs.sums).take(self.full());
        if pairs.clone().any(|(mine, theirs)| mine.counts != theirs.counts) {
            return Interval::default();
        }
        let unit = mine.units[0];
        let batch = |(mine, theirs): (&Batch<1>, &Batch<1>)| {
            let sum = (mine.sums[0] as f64 - theirs.sums[0] as f64) / unit;
            (sum, mine.counts[0] as f64)
        };
        let sums: Vec<(f64, f64)> = pairs.map(batch).filter(|(_, jobs)| *jobs > 0.0).collect();
        weighted(&sums, self.size, tested)
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
            self.sums.resize(needed, Batch { sums: [0; N], counts: [0; N] });
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

impl<const N: usize> Batch<N> {
    fn merge(&mut self, other: &Batch<N>) {
        for measure in 0..N {
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
    let sums: Vec<(f64, f64)> = values.iter().map(|value| (*value, 1.0)).collect();
    weighted(&sums, jobs, 1)
}

/// Returns the mean of batches with a sum and a weight each, and its precision. Batches of the run have at least `jobs` jobs.
///
/// The mean is a ratio of sums, and its error that of the linearised ratio. With equal weights both are those of a mean.
/// With `tested` intervals, each is so wide that all hold together with 95 %.
fn weighted(sums: &[(f64, f64)], jobs: u64, tested: usize) -> Interval {
    let weight: f64 = sums.iter().map(|(_, weight)| weight).sum();
    if weight <= 0.0 {
        return Interval::default();
    }
    let number = sums.len() as f64;
    let mean = sums.iter().map(|(sum, _)| sum).sum::<f64>() / weight;
    if sums.len() < BATCHES_LEAST {
        return Interval { mean: Some(mean), ..Interval::default() };
    }
    let residuals: Vec<f64> = sums.iter().map(|(sum, weight)| sum - mean * weight).collect();
    let squares: f64 = residuals.iter().map(|residual| residual.powi(2)).sum();
    let together: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let error = (squares / (number - 1.0) / number).sqrt() * (number / weight);
    let autocorrelation = (squares > 0.0).then(|| together / squares);
    let alike = autocorrelation.is_some_and(|correlation| correlation > CHANCE / number.sqrt());
    let trusted = jobs >= BATCH_JOBS_LEAST && !alike;
    Interval {
        mean: Some(mean),
        half_width: trusted.then(|| student::student_t(sums.len() - 1, tested) * error),
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

    /// Returns the batches of all jobs, and those of the jobs of a group, for amounts by position.
    fn run(jobs: u64, is_in: impl Fn(u64) -> bool, amount: impl Fn(u64) -> u128) -> (Batches, Batches<1>) {
        let (mut all, mut group) = (Batches::new(UNITS), Batches::new([1.0]));
        for place in 0..jobs {
            all.add(place, &[Some(amount(place)); MEASURES]);
            if is_in(place) {
                group.add(place, &[Some(amount(place))]);
            }
        }
        (all, group)
    }

    #[test]
    fn a_group_of_all_jobs_differs_as_all_jobs_do() {
        let (all, group) = run(6400, |_| true, |place| amount(place) + 3);
        let (before, of_before) = run(6400, |_| true, |place| amount(place * 7));
        let (whole, part) =
            (all.difference(&before, 0), all.group_difference(&before, [&group, &of_before], 1));
        let near = |a: Option<f64>, b: Option<f64>| (a.unwrap() - b.unwrap()).abs() < 1e-9;
        assert!(
            near(whole.mean, part.mean) && near(whole.half_width, part.half_width),
            "{whole:?}, {part:?}"
        );
        // Of two groups together the interval is wider.
        let two = all.group_difference(&before, [&group, &of_before], 2);
        assert!(two.mean == part.mean && two.half_width > part.half_width, "{two:?}");
    }

    /// The jobs of every third batch belong to the group, and more of them in each.
    #[test]
    fn a_group_counts_by_its_jobs_in_each_batch() {
        let is_in = |place: u64| (place / 100).is_multiple_of(3) && place % 100 <= place / 100;
        let (all, group) = run(6400, is_in, |place| 50 + amount(place));
        let (before, of_before) = run(6400, is_in, |place| amount(place * 3));
        let found = all.group_difference(&before, [&group, &of_before], 1);
        let full = all.full() as u64 * all.size();
        let mut batches = vec![(0.0, 0.0); all.full()];
        for place in (0..full).filter(|place| is_in(*place)) {
            let batch = &mut batches[usize::try_from(place / all.size()).unwrap()];
            batch.0 += 50.0 + amount(place) as f64 - amount(place * 3) as f64;
            batch.1 += 1.0;
        }
        batches.retain(|batch| batch.1 > 0.0);
        let (sum, jobs) = batches.iter().fold((0.0, 0.0), |all, batch| (all.0 + batch.0, all.1 + batch.1));
        let (mean, number) = (sum / jobs, batches.len() as f64);
        let squares: f64 = batches.iter().map(|batch| (batch.0 - mean * batch.1).powi(2)).sum();
        let error = (number / (number - 1.0) * squares).sqrt() / jobs;
        let half_width = student::student_t_95(batches.len() - 1) * error;
        assert!((found.mean.unwrap() - mean).abs() < 1e-9, "{found:?} for {mean}");
        assert!((found.half_width.unwrap() - half_width).abs() < 1e-9, "{found:?} for {half_width}");
    }

    #[test]
    fn no_interval_of_a_group_of_other_jobs_or_in_few_batches() {
        let (all, group) = run(6400, |place| place % 2 == 0, amount);
        let (before, other) = run(6400, |place| place % 4 == 0, amount);
        assert_eq!(all.group_difference(&before, [&group, &other], 1), Interval::default());
        let (short, of_short) = run(3200, |place| place % 2 == 0, amount);
        assert_eq!(all.group_difference(&short, [&group, &of_short], 1), Interval::default());
        let first = |place: u64| place < 900;
        let ((all, group), (before, other)) = (run(6400, first, u128::from), run(6400, first, amount));
        let found = all.group_difference(&before, [&group, &other], 1);
        assert!(found.mean.is_some() && found.half_width.is_none(), "{found:?}");
    }

    /// Returns a number that looks random, from 0 to 999.
    fn noise(of: u64) -> u128 {
        let mut mixed = of.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u128::from((mixed ^ (mixed >> 31)) % 1000)
    }

    /// Twenty groups whose waits differ by chance alone: any of them is named in a twentieth of the logs.
    #[test]
    fn many_groups_are_named_by_chance_no_more_often_than_one() {
        let (groups, jobs, logs) = (20_u64, 4096, 200_u64);
        let named = |tested: usize| {
            let of_log = |log: u64| {
                let waits = |side: u64| move |place: u64| noise((log * 2 + side) * 100_000 + place);
                (0..groups).any(|group| {
                    let is_in = |place| noise(place) % u128::from(groups) == u128::from(group);
                    let ((after, mine), (before, theirs)) =
                        (run(jobs, is_in, waits(0)), run(jobs, is_in, waits(1)));
                    let found = after.group_difference(&before, [&mine, &theirs], tested);
                    found.within_noise() == Some(false)
                })
            };
            (0..logs).filter(|log| of_log(*log)).count()
        };
        assert!((2..=20).contains(&named(20)), "{} of {logs} logs", named(20));
        assert!(named(1) > 90, "{} of {logs} logs without the correction", named(1));
    }
}
