//! The options of a measurement, and the processors that it uses.

use std::path::PathBuf;

use miserly_kernels::Kernel;

use crate::error::MeasureError;

/// The name of the paper.
pub const NAME: &str = "miser-1999";

/// The paper.
pub const TITLE: &str =
    "Roussos, Bitar, English: Deterministic Batch Scheduling Without Static Partitioning, 1999";

/// The parts of the measurement.
pub const PARTS: [&str; 5] = ["1-load", "2-interactive", "3-throughput", "4-latency", "5-pools"];

/// The options of a measurement.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program `miserly`, which is the daemon and the jobs.
    pub exe: PathBuf,
    /// The folder of the results.
    pub folder: PathBuf,
    /// The command that repeats the measurement.
    pub command: String,
    /// Whether to check the mechanisms only, in a short version.
    pub quick: bool,
    /// Factor of the work of each kernel, above 0. At 1 a run takes about 0.6 s on an idle processor of 2020.
    pub scale: f64,
    /// Repetitions of each point, at least 1.
    pub repeats: u32,
    /// Seed of the order of the runs.
    pub seed: u64,
    /// Threads of a kernel, and processors of the pool; by default half of the processors.
    pub threads: Option<usize>,
    /// The control group of the daemon, if it shall use one.
    pub cgroup: Option<PathBuf>,
    /// The only part to measure.
    pub only: Option<String>,
}

impl Options {
    /// Returns whether a part is measured.
    pub(crate) fn has(&self, part: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == part)
    }

    /// Returns the rounds of a kernel in each run.
    pub(crate) fn rounds(&self, kernel: Kernel) -> u32 {
        let full = match kernel {
            Kernel::Ep => 96.0,
            Kernel::Bt => 85.0,
            Kernel::Cg => 72.0,
        };
        let quick = if self.quick { 0.1 } else { 1.0 };
        // Within the range: a scale beyond it is the largest.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rounds = (full * quick * self.scale).round() as u32;
        rounds.max(1)
    }

    /// Returns the repetitions of each point.
    pub(crate) fn repeats(&self) -> u32 {
        if self.quick { 1 } else { self.repeats.max(1) }
    }

    /// Checks the options against the parts.
    pub(crate) fn check(&self) -> Result<(), MeasureError> {
        let known = self.only.as_deref().is_none_or(|only| PARTS.contains(&only));
        known.then_some(()).ok_or(MeasureError::Part)
    }
}

/// The processors of the machine as the experiment divides them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// All processors that this process may use.
    pub(crate) all: Vec<u32>,
    /// Those of the pool: the last ones, as the daemon takes them.
    pub(crate) pool: Vec<u32>,
    /// The others.
    pub(crate) rest: Vec<u32>,
}

impl Site {
    /// Divides the processors. The pool has `threads` of them, by default half, and leaves at least one.
    pub(crate) fn new(all: Vec<u32>, threads: Option<usize>) -> Result<Site, MeasureError> {
        if all.len() < 2 {
            return Err(MeasureError::Processors(all.len()));
        }
        let pool = threads.unwrap_or(all.len() / 2).clamp(1, all.len() - 1);
        let (rest, pool) = all.split_at(all.len() - pool);
        Ok(Site { rest: rest.to_vec(), pool: pool.to_vec(), all })
    }

    /// Returns the threads of a kernel.
    pub(crate) fn threads(&self) -> usize {
        self.pool.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_has_the_last_half_and_leaves_a_processor() {
        let site = |cpus: std::ops::Range<u32>, threads| Site::new(cpus.collect(), threads).unwrap();
        let two = site(0..2, None);
        assert_eq!((two.rest, two.pool), (vec![0], vec![1]));
        assert_eq!(site(0..16, None).pool, (8..16).collect::<Vec<_>>());
        assert_eq!(site(0..5, None).pool, [3, 4]);
        assert_eq!(site(0..4, Some(9)).rest, [0]);
        assert!(matches!(Site::new(vec![3], None), Err(MeasureError::Processors(1))));
    }

    #[test]
    fn quick_runs_are_short_and_single() {
        let options = Options {
            exe: "miserly".into(),
            folder: "results".into(),
            command: String::new(),
            quick: false,
            scale: 0.001,
            repeats: 3,
            seed: 1,
            threads: None,
            cgroup: None,
            only: None,
        };
        assert_eq!((options.rounds(Kernel::Ep), options.repeats()), (1, 3));
        let quick = Options { quick: true, scale: 1.0, ..options };
        assert_eq!((quick.rounds(Kernel::Ep), quick.repeats()), (10, 1));
        let none = Options { only: Some("5-none".into()), ..quick };
        assert!(matches!(none.check(), Err(MeasureError::Part)));
    }
}
