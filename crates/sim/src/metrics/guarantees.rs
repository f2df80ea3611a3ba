//! The quality of promises as forecasts (Zotkin et al. §8).

use miserly_core::Span;

use super::distribution::Distribution;
use crate::finished::Finished;

/// Promised wait against actual wait, over the jobs that did not start at once.
#[derive(Clone, Debug)]
pub struct Guarantees {
    /// Promised wait / actual wait, over the jobs that waited and were promised a start.
    pub ratio: Distribution,
    /// The time between the first reservation and the start, over the jobs that had a reservation
    /// (Tsafrir, Etsion, Feitelson §6).
    pub reservation_error: Distribution,
    after_reservation: u64,
    without_wait: u64,
    jobs: u64,
}

impl Default for Guarantees {
    fn default() -> Guarantees {
        Guarantees {
            ratio: Distribution::of_ratios(),
            reservation_error: Distribution::of_spans(),
            after_reservation: 0,
            without_wait: 0,
            jobs: 0,
        }
    }
}

impl Guarantees {
    pub(super) fn add(&mut self, job: &Finished) {
        self.jobs += 1;
        if let Some(reserved) = job.reserved {
            self.reservation_error.add_span(job.start.max(reserved) - job.start.min(reserved));
            self.after_reservation += u64::from(job.start > reserved);
        }
        let wait = job.wait();
        if wait <= Span::ZERO {
            self.without_wait += 1;
        } else if let Some(promised) = job.promised {
            self.ratio.add_ratio((promised - job.request.submit).ticks() as f64 / wait.ticks() as f64);
        }
    }

    /// Returns the jobs that started after their first reservation as a share of all jobs, 0 to 1, or
    /// `None` without jobs.
    pub fn after_reservation(&self) -> Option<f64> {
        (self.jobs > 0).then(|| self.after_reservation as f64 / self.jobs as f64)
    }

    /// Returns the share of jobs that did not wait, 0 to 1, or `None` without jobs.
    pub fn without_wait(&self) -> Option<f64> {
        (self.jobs > 0).then(|| self.without_wait as f64 / self.jobs as f64)
    }
}
