//! The jobs of a class over a stretch of the log, with the demands that are asked of them.

use miserly_classes::lsf::Class;

use super::super::Made;
use super::super::log::Memory;
use super::draft::{Draft, drafts};
use super::solve::STRAIN_MOST;
use super::stream::Streams;
use super::targets::Target;
use super::{memory, runtimes};
use crate::o2k::Month;

/// The tilts of the sizes that are tried are between minus and plus this.
const TILT_MOST: f64 = 4.0;

/// How often the range of tilts is halved.
const TILT_STEPS: u32 = 10;

/// How far, as a power of e, the exponents may be from 1 without a tilt: runtimes and memory then still spread over
/// all of their ranges. Decided here.
const GOOD: f64 = 1.4;

/// What share of a target may be missed: less than rounding shows in any cell of Table 4.
const MISS: f64 = 0.01;

/// What is to be made.
pub(super) struct Batch {
    pub(super) month: Month,
    pub(super) class: Class,
    pub(super) target: Target,
    /// From this second of the log...
    pub(super) from: u64,
    /// ... to before this one.
    pub(super) to: u64,
}

/// A batch made with some tilt.
struct Attempt {
    drafts: Vec<Draft>,
    runtimes: Vec<u64>,
    /// Memory asked for, kB per processor.
    requests: Vec<u64>,
    /// The logarithms of the exponents of runtimes and memory: 0 is no strain, and far below it, all are at their
    /// upper bounds.
    strains: [f64; 2],
    /// By how much of the target the demands for processors and memory miss it.
    misses: [f64; 2],
}

impl Attempt {
    /// How far the worse of the exponents is from 1; beyond that of any that hits its targets, if one of them is missed.
    fn strain(&self) -> f64 {
        let worse = |of: [f64; 2]| of[0].abs().max(of[1].abs());
        let missed = worse(self.misses);
        if missed < MISS { worse(self.strains) } else { STRAIN_MOST + missed }
    }

    /// Whether it is memory, more than runtimes, that has to grow.
    fn is_too_wide(&self) -> bool {
        self.strains[1] < self.strains[0]
    }
}

impl Batch {
    /// The jobs.
    pub(super) fn jobs(&self, streams: &Streams) -> Vec<Made> {
        let Attempt { drafts, runtimes, requests, .. } = self.best_attempt(streams);
        let memory = memory::used(&drafts, &runtimes, &requests, streams);
        let jobs = drafts.iter().zip(&runtimes).zip(memory);
        jobs.map(|((draft, &runtime), memory)| self.made(draft, runtime, memory)).collect()
    }

    /// Without a tilt if that is good enough, else with the one of those tried that strains the least.
    fn best_attempt(&self, streams: &Streams) -> Attempt {
        let mut best = self.attempt(0.0, streams);
        // The narrower the jobs, the longer they run for the same work, and the less memory each needs meanwhile.
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

    fn attempt(&self, tilt: f64, streams: &Streams) -> Attempt {
        let drafts = drafts(self, tilt, streams);
        let (runtimes, bent) = runtimes::bend(&drafts, self.target.procs);
        let (requests, asked) =
            memory::requests(self.class.size, &drafts, &runtimes, self.target.memory, streams);
        let demands = demands(&drafts, &runtimes, &requests);
        let misses = [demands[0] / self.target.procs - 1.0, demands[1] / self.target.memory - 1.0];
        Attempt { drafts, runtimes, requests, strains: [bent.ln(), asked.ln()], misses }
    }

    fn made(&self, draft: &Draft, runtime: u64, memory: Memory) -> Made {
        // Twelve at most.
        let queue = u32::try_from(self.class.index() + 1).unwrap_or(u32::MAX);
        Made {
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

/// The processor-seconds and the kB-seconds of jobs.
fn demands(drafts: &[Draft], runtimes: &[u64], requests: &[u64]) -> [f64; 2] {
    let jobs = drafts.iter().zip(runtimes).zip(requests);
    let sums = jobs.fold([0, 0], |[procs, memory], ((draft, &runtime), &request)| {
        let work = u64::from(draft.procs) * runtime;
        [procs + u128::from(work), memory + u128::from(work) * u128::from(request)]
    });
    sums.map(|sum| sum as f64)
}
