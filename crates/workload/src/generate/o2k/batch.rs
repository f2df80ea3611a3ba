//! The jobs of a class in a part of the log, with the required demands.

use miserly_classes::lsf::Class;

use super::super::GeneratedJob;
use super::super::log::JobMemory;
use super::draft::{Draft, drafts};
use super::solve::STRAIN_MOST;
use super::stream::Streams;
use super::targets::ClassTarget;
use super::{memory, runtimes};
use crate::o2k::Month;

/// Bound of the tilts of sizes that are tried, in both directions.
const TILT_MOST: f64 = 4.0;

/// Number of bisections of the range of tilts.
const TILT_STEPS: u32 = 10;

/// Limit for the exponents without a tilt, as distance from 1 in powers of e. Decided here.
///
/// Up to this limit, runtimes and memory still span their whole ranges.
const GOOD: f64 = 1.4;

/// Acceptable relative error of a target, less than the rounding in any cell of Table 4.
const MISS: f64 = 0.01;

/// The specification of a batch.
pub(super) struct ClassBatch {
    pub(super) month: Month,
    pub(super) class: Class,
    pub(super) target: ClassTarget,
    /// First second of the log.
    pub(super) from: u64,
    /// Last second of the log, excluded.
    pub(super) to: u64,
}

/// A batch generated with a tilt.
struct TiltedBatch {
    drafts: Vec<Draft>,
    runtimes: Vec<u64>,
    /// Requested memory in kB per processor.
    requests: Vec<u64>,
    /// Logarithms of the exponents of runtimes and memory.
    ///
    /// 0 is no strain. Far below 0, all values are at their upper bounds.
    strains: [f64; 2],
    /// Relative errors of the demands for processors and memory.
    misses: [f64; 2],
}

impl TiltedBatch {
    /// Returns the distance of the worse exponent from 1, or a worst value if a target is missed.
    fn strain(&self) -> f64 {
        let worse = |of: [f64; 2]| of[0].abs().max(of[1].abs());
        let missed = worse(self.misses);
        if missed < MISS { worse(self.strains) } else { STRAIN_MOST + missed }
    }

    /// Returns whether memory, more than runtimes, must grow.
    fn is_too_wide(&self) -> bool {
        self.strains[1] < self.strains[0]
    }
}

impl ClassBatch {
    /// Generates the jobs.
    pub(super) fn jobs(&self, streams: &Streams) -> Vec<GeneratedJob> {
        let TiltedBatch { drafts, runtimes, requests, .. } = self.best_attempt(streams);
        let memory = memory::used(&drafts, &runtimes, &requests, streams);
        let jobs = drafts.iter().zip(&runtimes).zip(memory);
        jobs.map(|((draft, &runtime), memory)| self.made(draft, runtime, memory)).collect()
    }

    /// Generates without a tilt if that is good enough, else with the tried tilt of least strain.
    fn best_attempt(&self, streams: &Streams) -> TiltedBatch {
        let mut best = self.attempt(0.0, streams);
        // Narrower jobs run longer for the same work and need less memory at a time.
        let (mut low, mut high) = if best.is_too_wide() { (-TILT_MOST, 0.0) } else { (0.0, TILT_MOST) };
        for _ in 0..TILT_STEPS {
            if best.strain() <= GOOD {
                break;
            }
            let tilt = f64::midpoint(low, high);
            let other = self.attempt(tilt, streams);
            if other.is_too_wide() {
                high = tilt;
            } else {
                low = tilt;
            }
            if other.strain() < best.strain() {
                best = other;
            }
        }
        best
    }

    fn attempt(&self, tilt: f64, streams: &Streams) -> TiltedBatch {
        let drafts = drafts(self, tilt, streams);
        let (runtimes, bent) = runtimes::bend(&drafts, self.target.procs);
        let (requests, asked) =
            memory::requests(self.class.size, &drafts, &runtimes, self.target.memory, streams);
        let demands = demands(&drafts, &runtimes, &requests);
        let misses = [demands[0] / self.target.procs - 1.0, demands[1] / self.target.memory - 1.0];
        TiltedBatch { drafts, runtimes, requests, strains: [bent.ln(), asked.ln()], misses }
    }

    fn made(&self, draft: &Draft, runtime: u64, memory: JobMemory) -> GeneratedJob {
        // At most twelve.
        let queue = u32::try_from(self.class.index() + 1).unwrap_or(u32::MAX);
        GeneratedJob {
            submit: draft.submission.second,
            runtime,
            estimate: draft.estimate,
            procs: draft.procs,
            memory: Some(memory),
            user: draft.user,
            queue: Some(queue),
            executable: None,
            after: None,
        }
    }
}

/// Returns the processor-seconds and the kB-seconds of jobs.
fn demands(drafts: &[Draft], runtimes: &[u64], requests: &[u64]) -> [f64; 2] {
    let jobs = drafts.iter().zip(runtimes).zip(requests);
    let sums = jobs.fold([0, 0], |[procs, memory], ((draft, &runtime), &request)| {
        let work = u64::from(draft.procs) * runtime;
        [procs + u128::from(work), memory + u128::from(work) * u128::from(request)]
    });
    sums.map(|sum| sum as f64)
}
