//! Means in which a job counts with its area: processors x runtime.

use crate::finished::Finished;

/// Sums over the measured jobs that ran at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AreaWeighted {
    /// Processor-ticks.
    area: u128,
    /// Processor-ticks times the response in milliseconds, which keeps a century of a large machine in range.
    response: u128,
    /// Processors times response: the area times the slowdown, ticks.
    slowdown: u128,
}

impl AreaWeighted {
    pub(super) fn add(&mut self, job: &Finished, area: u128) {
        if area == 0 {
            return;
        }
        let response = u128::from(job.response().ticks().unsigned_abs());
        self.area += area;
        self.response += area * (response / 1000);
        self.slowdown += u128::from(job.request.procs()) * response;
    }

    /// Returns the mean response in seconds; `None` without work.
    pub(super) fn response(&self) -> Option<f64> {
        (self.area > 0).then(|| self.response as f64 / self.area as f64 / 1000.0)
    }

    /// Returns the mean slowdown; `None` without work.
    pub(super) fn slowdown(&self) -> Option<f64> {
        (self.area > 0).then(|| self.slowdown as f64 / self.area as f64)
    }
}
