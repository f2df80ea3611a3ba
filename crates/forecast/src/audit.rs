//! What became of forecasts: coverage, precision and loss, by size class.

use std::collections::BTreeMap;

/// The levels of the upper bounds, in percent. The first one is the median.
pub const LEVELS: [u8; 3] = [50, 80, 95];

/// The upper bounds of the size classes, in processors. The last class has none.
const SIZES: [u64; 4] = [1, 4, 16, 64];

/// The names of the size classes.
const NAMES: [&str; 5] = ["1", "2-4", "5-16", "17-64", ">64"];

/// The classes of levels in which waits are counted.
pub const LEVEL_CLASSES: usize = 20;

/// A class of jobs by their processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SizeClass(u8);

impl SizeClass {
    /// Every class, in order.
    pub const ALL: [SizeClass; 5] = [SizeClass(0), SizeClass(1), SizeClass(2), SizeClass(3), SizeClass(4)];

    /// Returns the class of jobs of this size.
    pub fn new(procs: u64) -> SizeClass {
        let place = SIZES.iter().take_while(|most| procs > **most).count();
        SizeClass(u8::try_from(place).unwrap_or(0))
    }

    /// Returns the name: a range of processors.
    pub fn name(self) -> &'static str {
        NAMES[usize::from(self.0)]
    }
}

/// Upper bounds of one level against the waits that followed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quantile {
    jobs: u64,
    kept: u64,
    /// Seconds.
    bounds: u128,
    /// Hundredths of seconds.
    loss: u128,
}

impl Quantile {
    fn add(&mut self, level: u8, bound: u64, wait: u64) {
        self.jobs += 1;
        self.kept += u64::from(wait <= bound);
        self.bounds += u128::from(bound);
        let weight = if wait > bound { level } else { 100 - level };
        self.loss += u128::from(weight) * u128::from(wait.abs_diff(bound));
    }

    fn join(&mut self, other: &Quantile) {
        self.jobs += other.jobs;
        self.kept += other.kept;
        self.bounds += other.bounds;
        self.loss += other.loss;
    }

    /// Returns the number of jobs with a bound.
    pub fn jobs(&self) -> u64 {
        self.jobs
    }

    /// Returns the number of waits within their bounds.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// Returns the share of waits within their bounds, 0 to 1.
    pub fn coverage(&self) -> Option<f64> {
        self.mean(self.kept.into())
    }

    /// Returns the mean bound, in seconds.
    pub fn mean_bound(&self) -> Option<f64> {
        self.mean(self.bounds)
    }

    /// Returns the mean pinball loss, in seconds.
    pub fn pinball(&self) -> Option<f64> {
        self.mean(self.loss).map(|loss| loss / 100.0)
    }

    fn mean(&self, sum: u128) -> Option<f64> {
        (self.jobs > 0).then(|| sum as f64 / self.jobs as f64)
    }
}

/// The audit of a class of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassAudit {
    /// Jobs with a forecast.
    pub jobs: u64,
    /// Jobs that started at once, whose forecast is their start.
    pub at_once: u64,
    /// Each of [`LEVELS`].
    pub levels: [Quantile; LEVELS.len()],
    /// The promise as a bound of level 95.
    pub promise: Quantile,
    /// The baseline as a bound of level 95.
    pub bmbp: Quantile,
    /// Jobs that did not start at once, by the level of the bound that their wait just keeps: up to 5 %, 10 %, ..., 100 %.
    pub by_level: [u64; LEVEL_CLASSES],
    /// Jobs whose start is within 1, 10 and 60 minutes of the median.
    pub near: [u64; 3],
}

/// A forecast with its outcome, in seconds of wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) wait: u64,
    pub(crate) at_once: bool,
    pub(crate) bounds: [u64; LEVELS.len()],
    pub(crate) promise: Option<u64>,
    pub(crate) bmbp: Option<u64>,
    /// The level of the bound that the wait just keeps, in millionths.
    pub(crate) level: Option<u64>,
}

impl ClassAudit {
    fn add(&mut self, outcome: &Outcome) {
        let wait = outcome.wait;
        self.jobs += 1;
        self.at_once += u64::from(outcome.at_once);
        for ((quantile, level), bound) in self.levels.iter_mut().zip(LEVELS).zip(outcome.bounds) {
            quantile.add(level, bound, wait);
        }
        if let Some(promise) = outcome.promise {
            self.promise.add(95, promise, wait);
        }
        if let Some(bound) = outcome.bmbp {
            self.bmbp.add(95, bound, wait);
        }
        if let Some(level) = outcome.level {
            let class = (level * LEVEL_CLASSES as u64).div_ceil(1_000_000).max(1) - 1;
            self.by_level[usize::try_from(class).unwrap_or(0).min(LEVEL_CLASSES - 1)] += 1;
        }
        for (near, minutes) in self.near.iter_mut().zip([1, 10, 60]) {
            *near += u64::from(wait.abs_diff(outcome.bounds[0]) <= minutes * 60);
        }
    }

    fn join(&mut self, other: &ClassAudit) {
        self.jobs += other.jobs;
        self.at_once += other.at_once;
        self.levels.iter_mut().zip(&other.levels).for_each(|(mine, theirs)| mine.join(theirs));
        self.promise.join(&other.promise);
        self.bmbp.join(&other.bmbp);
        self.by_level.iter_mut().zip(other.by_level).for_each(|(mine, theirs)| *mine += theirs);
        self.near.iter_mut().zip(other.near).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Returns the share of waits, of jobs that did not start at once, within the bound of each level: 5 %, 10 %, ..., 100 %.
    pub fn calibration(&self) -> Option<[f64; LEVEL_CLASSES]> {
        let all: u64 = self.by_level.iter().sum();
        let mut within = 0;
        let share = |jobs| {
            within += jobs;
            within as f64 / all as f64
        };
        (all > 0).then(|| self.by_level.map(share))
    }

    /// Returns the shares of medians within 1, 10 and 60 minutes of the start, 0 to 1.
    pub fn near_shares(&self) -> Option<[f64; 3]> {
        (self.jobs > 0).then(|| self.near.map(|near| near as f64 / self.jobs as f64))
    }
}

/// The audit of all forecasts, by size class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Audit {
    classes: BTreeMap<SizeClass, ClassAudit>,
}

impl Audit {
    pub(crate) fn add(&mut self, size: SizeClass, outcome: &Outcome) {
        self.classes.entry(size).or_default().add(outcome);
    }

    /// Returns the audit of each size class that has jobs, in order.
    pub fn classes(&self) -> impl Iterator<Item = (SizeClass, &ClassAudit)> {
        self.classes.iter().map(|(size, audit)| (*size, audit))
    }

    /// Returns the audit of all jobs.
    pub fn all(&self) -> ClassAudit {
        let mut all = ClassAudit::default();
        self.classes.values().for_each(|class| all.join(class));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_classes() {
        let names: Vec<&str> =
            [1, 2, 4, 5, 16, 17, 64, 65, 100_000].map(|procs| SizeClass::new(procs).name()).to_vec();
        assert_eq!(names, ["1", "2-4", "2-4", "5-16", "5-16", "17-64", "17-64", ">64", ">64"]);
    }

    #[test]
    fn pinball_weighs_misses_by_the_level() {
        let mut quantile = Quantile::default();
        quantile.add(95, 100, 120);
        quantile.add(95, 100, 80);
        assert_eq!(quantile.coverage(), Some(0.5));
        assert_eq!(quantile.pinball(), Some(10.0));
    }
}
