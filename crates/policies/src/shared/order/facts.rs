//! The facts by which a formula ranks jobs, for bounds on ranks.

use miserly_core::{Entry, Span};
use miserly_formula::Interval;

use super::priority::{PLAIN, WAIT, constant_facts};

/// The first values of [`Priority::NAMES`](super::Priority::NAMES) for a job, or for several jobs: between two bounds. The wait
/// has no value yet. A formula with usage has no bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Facts([Interval; PLAIN]);

impl Facts {
    /// Returns the facts of a job.
    pub(crate) fn new(entry: &Entry) -> Facts {
        Facts(constant_facts(entry).map(interval))
    }

    /// Returns whether both are the facts of one job each, and the same: the jobs have the same rank at equal waits.
    pub(crate) fn are_alike(&self, other: &Facts) -> bool {
        let exact = |(mine, theirs): (&Interval, &Interval)| mine == theirs && !mine.is_any();
        self.0.iter().zip(&other.0).all(exact)
    }

    /// Extends the bounds to further jobs.
    pub(crate) fn extend(&mut self, other: &Facts) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.hull(theirs);
        }
    }

    /// Returns the values, and any wait.
    pub(super) fn values(&self) -> &[Interval] {
        &self.0
    }

    /// Returns the values with waits between these two.
    pub(super) fn with_waits(&self, shortest: Span, longest: Span) -> [Interval; PLAIN] {
        let mut values = self.0;
        values[WAIT] = interval(shortest.as_secs_f64()).hull(interval(longest.as_secs_f64()));
        values
    }
}

/// Returns the interval of a value. Seconds beyond the limit were rounded twice, and may be those of several spans.
pub(super) fn interval(value: f64) -> Interval {
    const LIMIT: f64 = 4e9;
    if value.abs() <= LIMIT { Interval::from_rounded(value) } else { Interval::ANY }
}
