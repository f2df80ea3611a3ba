//! The measures of each job.

use miserly_core::Span;

use super::distribution::Distribution;
use crate::finished::Finished;

/// The bound of the bounded slowdowns: jobs shorter than this count as this long (Zotkin et al.
/// §2).
const TAU: Span = Span::from_ticks(10_000_000);

/// The number of measures.
pub const MEASURES: usize = 6;

/// The measures of the papers over some jobs.
#[derive(Clone, Debug)]
pub struct Measures {
    /// Time in the queue, seconds.
    pub wait: Distribution,
    /// Time in the system, seconds.
    pub response: Distribution,
    /// Response / runtime, over the jobs that ran at all.
    pub slowdown: Distribution,
    /// (wait + max(run, 10 s)) / max(run, 10 s): the bounded slowdown of Zotkin and of Kettimuthu.
    pub bounded_slowdown: Distribution,
    /// max(1, (wait + run) / max(run, 10 s)): the form that is standard today.
    pub bounded_slowdown_standard: Distribution,
    /// Response / (processors x max(run, 10 s)): Zotkin et al. eq. 2.
    pub width_slowdown: Distribution,
}

/// The amounts that one job added to the sums, in the order of [`Measures::all`] and in their
/// integer units.
///
/// `None` for a measure that the job does not have.
pub(super) type Amounts = [Option<u128>; MEASURES];

impl Default for Measures {
    fn default() -> Measures {
        Measures {
            wait: Distribution::of_spans(),
            response: Distribution::of_spans(),
            slowdown: Distribution::of_ratios(),
            bounded_slowdown: Distribution::of_ratios(),
            bounded_slowdown_standard: Distribution::of_ratios(),
            width_slowdown: Distribution::of_ratios(),
        }
    }
}

impl Measures {
    /// Adds a job.
    pub(super) fn add(&mut self, job: &Finished) -> Amounts {
        let (wait, response) = (job.wait(), job.response());
        let run = job.runtime;
        let bounded = run.max(TAU).ticks() as f64;
        let response_ticks = response.ticks() as f64;
        let ran = run > Span::ZERO;
        [
            Some(self.wait.add_span(wait)),
            Some(self.response.add_span(response)),
            ran.then(|| self.slowdown.add_ratio(response_ticks / run.ticks() as f64)),
            Some(self.bounded_slowdown.add_ratio((wait + run.max(TAU)).ticks() as f64 / bounded)),
            Some(self.bounded_slowdown_standard.add_ratio((response_ticks / bounded).max(1.0))),
            Some(
                self.width_slowdown.add_ratio(response_ticks / (job.request.procs().get() as f64 * bounded)),
            ),
        ]
    }

    /// The position of the wait in [`all`](Measures::all).
    pub const WAIT: usize = 0;

    /// Returns the distributions, in one fixed order.
    pub fn all(&self) -> [&Distribution; MEASURES] {
        [
            &self.wait,
            &self.response,
            &self.slowdown,
            &self.bounded_slowdown,
            &self.bounded_slowdown_standard,
            &self.width_slowdown,
        ]
    }

    /// Replaces the stored values of each measure by a histogram.
    pub(super) fn sketch(&mut self) {
        self.all_mut().into_iter().for_each(Distribution::sketch);
    }

    /// Returns the distributions in the order of [`all`](Measures::all), to change them.
    pub fn all_mut(&mut self) -> [&mut Distribution; MEASURES] {
        [
            &mut self.wait,
            &mut self.response,
            &mut self.slowdown,
            &mut self.bounded_slowdown,
            &mut self.bounded_slowdown_standard,
            &mut self.width_slowdown,
        ]
    }
}
