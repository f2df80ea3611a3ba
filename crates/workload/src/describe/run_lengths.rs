//! Repeated submissions of the same job by a user (Feitelson 1996, §3.3).

use std::collections::BTreeMap;

use super::spread::ValueCounts;
use crate::swf::{Field, Record};

/// Default minimum number of runs of a length in the regression.
///
/// The paper deletes "outliers that appear only a small number of times" without a number. Five is
/// the usual least count in a cell of a test of frequencies (Cochran 1954).
pub const FEW_RUNS: u64 = 5;

/// The runs of a log: consecutive jobs of one user that repeat the same job on as many processors.
///
/// Jobs are in the order of the log, and jobs of other users do not end a run. Jobs of unknown user
/// or size belong to no run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunLengths {
    /// Whether the same job means the same executable (field 14).
    ///
    /// A log without executables counts any job of the user. In a log with executables, jobs
    /// without one belong to no run.
    pub by_executable: bool,
    /// Runs of all jobs, as in the paper.
    pub all: Runs,
    /// Runs of the parallel jobs. Serial jobs do not end them.
    pub parallel: Runs,
}

/// Runs by length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Runs {
    /// Lengths, ascending, with the number of runs.
    pub lengths: Vec<(u64, u64)>,
}

impl Runs {
    /// Returns the number of runs.
    pub fn count(&self) -> u64 {
        self.lengths.iter().map(|&(_, runs)| runs).sum()
    }

    /// Returns the number of jobs in them.
    pub fn jobs(&self) -> u64 {
        self.lengths.iter().map(|&(length, runs)| length * runs).sum()
    }

    /// Returns the mean length, or `None` without runs.
    pub fn mean(&self) -> Option<f64> {
        (!self.lengths.is_empty()).then(|| self.jobs() as f64 / self.count() as f64)
    }

    /// Returns the longest length, or `None` without runs.
    pub fn longest(&self) -> Option<u64> {
        self.lengths.last().map(|&(length, _)| length)
    }

    /// Returns the order of the generalised Zipf distribution of the lengths, p(n) ~ 1 / n^order.
    ///
    /// It is the negated slope of the least-squares line through the logarithms of lengths and
    /// counts. Lengths with fewer than `least` runs are excluded. `None` if fewer than two lengths
    /// remain.
    ///
    /// # Source
    /// Feitelson 1996, §3.3: 2.2 on the iPSC/860 of NASA Ames and on the SP1 of Argonne.
    pub fn order(&self, least: u64) -> Option<f64> {
        let kept = self.lengths.iter().filter(|&&(_, runs)| runs >= least.max(1));
        let points: Vec<_> = kept.map(|&(length, runs)| ((length as f64).ln(), (runs as f64).ln())).collect();
        if points.len() < 2 {
            return None;
        }
        let of = points.len() as f64;
        let mean_x = points.iter().map(|point| point.0).sum::<f64>() / of;
        let mean_y = points.iter().map(|point| point.1).sum::<f64>() / of;
        let along: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
        let both: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
        // Equal counts have order 0, not -0.
        Some(0.0 - both / along)
    }
}

/// The properties that jobs of one run share.
#[derive(Clone, Copy, PartialEq, Eq)]
struct RepeatKey {
    executable: Option<u64>,
    size: u64,
}

/// A counter of runs. Memory grows with the users.
#[derive(Default)]
struct RunCounter {
    /// Last job of each user, and the number of its repetitions.
    last: BTreeMap<u64, (RepeatKey, u64)>,
    lengths: ValueCounts,
}

impl RunCounter {
    fn add(&mut self, user: u64, same: RepeatKey) {
        let (last, length) = self.last.entry(user).or_insert((same, 0));
        if *last != same {
            self.lengths.add(*length);
            (*last, *length) = (same, 0);
        }
        *length += 1;
    }

    fn finish(mut self) -> Runs {
        self.last.values().for_each(|&(_, length)| self.lengths.add(length));
        Runs { lengths: self.lengths.iter().collect() }
    }
}

/// A counter of runs of all jobs and of the parallel ones.
#[derive(Default)]
struct BothCounter {
    all: RunCounter,
    parallel: RunCounter,
}

impl BothCounter {
    fn add(&mut self, user: u64, same: RepeatKey) {
        self.all.add(user, same);
        if same.size > 1 {
            self.parallel.add(user, same);
        }
    }

    fn finish(self, by_executable: bool) -> RunLengths {
        RunLengths { by_executable, all: self.all.finish(), parallel: self.parallel.finish() }
    }
}

/// A counter with and without executables, because only the end of the log shows whether it has
/// any.
#[derive(Default)]
pub(super) struct RunLengthCounter {
    /// `None` before the first job with an executable.
    by_executable: Option<BothCounter>,
    by_size: BothCounter,
}

impl RunLengthCounter {
    pub(super) fn add(&mut self, record: &Record, size: u64) {
        let Some(user) = record.recorded(Field::User) else { return };
        let executable = record.recorded(Field::Executable);
        if executable.is_some() {
            self.by_executable.get_or_insert_default().add(user, RepeatKey { executable, size });
        }
        self.by_size.add(user, RepeatKey { executable: None, size });
    }

    pub(super) fn finish(self) -> RunLengths {
        match self.by_executable {
            Some(counter) => counter.finish(true),
            None => self.by_size.finish(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type TestJob = (u64, Option<u64>, u64);

    fn counted(jobs: &[TestJob]) -> RunLengths {
        let mut counter = RunLengthCounter::default();
        for &(user, executable, size) in jobs {
            let mut record = Record::unknown();
            record.set(Field::User, user.cast_signed());
            record.set(Field::Executable, executable.map_or(-1, u64::cast_signed));
            counter.add(&record, size);
        }
        counter.finish()
    }

    /// Computes the same from a list of jobs per user, cut where neighbours differ.
    fn naive(jobs: &[TestJob], least_size: u64) -> Vec<(u64, u64)> {
        let by_executable = jobs.iter().any(|job| job.1.is_some());
        let counts = |job: &&TestJob| job.2 >= least_size && (!by_executable || job.1.is_some());
        let mut lengths = Vec::new();
        for user in 0..10 {
            let own: Vec<_> = jobs.iter().filter(|job| job.0 == user).filter(counts).collect();
            lengths.extend(own.chunk_by(|a, b| a == b).map(|run| run.len() as u64));
        }
        lengths.sort_unstable();
        lengths.chunk_by(|a, b| a == b).map(|alike| (alike[0], alike.len() as u64)).collect()
    }

    proptest! {
        #[test]
        fn runs_are_those_of_each_users_list(
            executables: bool,
            jobs in prop::collection::vec((0..4_u64, prop::option::of(0..3_u64), 1..3_u64), 0..200),
        ) {
            let strip = |&(user, executable, size): &TestJob| (user, executable.filter(|_| executables), size);
            let jobs: Vec<TestJob> = jobs.iter().map(strip).collect();
            let runs = counted(&jobs);
            prop_assert_eq!(runs.by_executable, jobs.iter().any(|job| job.1.is_some()));
            prop_assert_eq!(&runs.all.lengths, &naive(&jobs, 1));
            prop_assert_eq!(&runs.parallel.lengths, &naive(&jobs, 2));
        }
    }

    #[test]
    fn others_between_do_not_end_a_run_and_another_size_does() {
        let runs =
            counted(&[(1, None, 4), (2, None, 4), (1, None, 4), (1, None, 8), (1, None, 1), (1, None, 8)]);
        assert_eq!(runs.all.lengths, [(1, 4), (2, 1)]);
        // The serial job lies between two runs of all jobs, and in no run of the parallel ones.
        assert_eq!(runs.parallel.lengths, [(1, 1), (2, 2)]);
        assert_eq!((runs.all.count(), runs.all.jobs(), runs.all.longest()), (5, 6, Some(2)));
        assert_eq!(runs.all.mean(), Some(1.2));
    }

    #[test]
    fn the_order_of_a_power_law_and_of_too_little() {
        // 3600 / n^2, and a length with a single run, off the line.
        let lengths = vec![(1, 3600), (2, 900), (3, 400), (6, 100), (60, 1), (402, 1)];
        let runs = Runs { lengths };
        assert!((runs.order(FEW_RUNS).unwrap() - 2.0).abs() < 1e-12);
        assert!(runs.order(1).unwrap() < 1.99);
        assert_eq!(runs.order(1000), None);
        assert_eq!(Runs::default().order(1), None);
    }
}
