//! The urgency of a job, and the suspensions that it permits.

use std::cmp::Ordering;

use miserly_core::{Entry, Procs, Span, Time};

/// An exact ratio. A larger one is more urgent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rank {
    over: u128,
    under: u128,
}

impl PartialEq for Rank {
    fn eq(&self, other: &Rank) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Rank {}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Rank) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Rank) -> Ordering {
        let mine = self.over.saturating_mul(other.under);
        mine.cmp(&other.over.saturating_mul(self.under))
    }
}

/// A million. Ratios that a user gives are counted in millionths.
pub(super) const MILLION: u128 = 1_000_000;

impl Rank {
    /// Returns whether it is at least this multiple of the other rank, in millionths.
    fn reaches(self, millionths: u64, other: Rank) -> bool {
        let mine = self.over.checked_mul(other.under).and_then(|product| product.checked_mul(MILLION));
        let bar = other.over.saturating_mul(self.under).saturating_mul(u128::from(millionths));
        // A product that overflows permits nothing.
        mine.is_some_and(|mine| mine >= bar)
    }

    /// Returns whether it exceeds `sum / parts` times `millionths`.
    pub(super) fn exceeds(self, millionths: u64, sum: u128, parts: u128) -> bool {
        let mine = self.over.saturating_mul(parts).saturating_mul(MILLION);
        mine > sum.saturating_mul(self.under).saturating_mul(u128::from(millionths))
    }
}

/// The condition under which a job may suspend another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// By xfactor: (wait + estimate) / estimate, where the wait is all the time that a job did not
    /// run.
    ///
    /// The job's xfactor must be at least `factor` millionths of the running job's. Without a
    /// factor no job may suspend another one.
    Xfactor {
        /// The suspension factor, in millionths, more than a million.
        factor: Option<u64>,
    },
    /// By remaining time: less than that of the running job, by their estimates. Jobs may starve.
    Remaining,
}

/// An upper bound on the remaining time, in ticks.
const LONGEST: u128 = 1 << 64;

impl Criterion {
    /// Returns the urgency of a job.
    ///
    /// While a job runs, its rank is constant under [`Criterion::Xfactor`]. Under
    /// [`Criterion::Remaining`] it grows equally for all running jobs.
    pub(super) fn rank(self, entry: &Entry, now: Time) -> Rank {
        let estimate = ticks(estimate(entry));
        match self {
            Criterion::Xfactor { .. } => {
                let wait = (now - entry.request.submit - ran(entry, now)).max(Span::ZERO);
                Rank { over: ticks(wait) + estimate, under: estimate }
            }
            Criterion::Remaining => {
                let left = estimate.saturating_sub(ticks(ran(entry, now)));
                Rank { over: LONGEST - left, under: 1 }
            }
        }
    }

    /// Returns whether a job of the first rank may suspend one of the second.
    pub(super) fn entitles(self, idle: Rank, running: Rank) -> bool {
        match self {
            Criterion::Xfactor { factor } => factor.is_some_and(|factor| idle.reaches(factor, running)),
            Criterion::Remaining => idle > running,
        }
    }

    /// Returns the earliest time at which an idle job may suspend one of that rank, if waiting
    /// alone suffices.
    pub(super) fn entitled_at(self, entry: &Entry, now: Time, running: Rank) -> Option<Time> {
        let Criterion::Xfactor { factor: Some(factor) } = self else { return None };
        let estimate = ticks(estimate(entry));
        let bar = running.over.checked_mul(estimate)?.checked_mul(u128::from(factor))?;
        let wait = bar.div_ceil(running.under.checked_mul(MILLION)?).saturating_sub(estimate);
        let wait = Span::from_ticks(i64::try_from(wait).ok()?);
        Some(entry.request.submit + ran(entry, now) + wait)
    }
}

/// Returns the estimate of a job, at least a second.
pub(super) fn estimate(entry: &Entry) -> Span {
    entry.request.estimate.max(SECOND)
}

const SECOND: Span = Span::from_ticks(1_000_000);

/// Returns the time for which a job has worked.
pub(super) fn ran(entry: &Entry, now: Time) -> Span {
    let procs = u128::from(entry.request.procs().max(Procs::ONE));
    i64::try_from(entry.done(now) / procs).map_or(Span::MAX, Span::from_ticks)
}

/// Returns the current slowdown of immediate service: (wait + run) / run.
///
/// It is infinite until a job has run.
pub(super) fn current_slowdown(entry: &Entry, now: Time) -> Rank {
    let run = ran(entry, now);
    let wait = (now - entry.request.submit - run).max(Span::ZERO);
    Rank { over: (ticks(wait) + ticks(run)).max(1), under: ticks(run) }
}

pub(super) fn ticks(span: Span) -> u128 {
    u128::from(span.ticks().unsigned_abs())
}
