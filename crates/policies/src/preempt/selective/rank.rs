//! How urgent a job is, and what that entitles it to.

use std::cmp::Ordering;

use miserly_core::{Entry, Procs, Span, Time};

/// A ratio, exactly. The larger, the more urgent.
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

/// A million: ratios that a user gives are counted in millionths.
pub(super) const MILLION: u128 = 1_000_000;

impl Rank {
    /// Whether it is at least so many millionths of the other one.
    fn reaches(self, millionths: u64, other: Rank) -> bool {
        let mine = self.over.checked_mul(other.under).and_then(|product| product.checked_mul(MILLION));
        let bar = other.over.saturating_mul(self.under).saturating_mul(u128::from(millionths));
        // What is too large to be told apart entitles to nothing.
        mine.is_some_and(|mine| mine >= bar)
    }

    /// Whether it is more than this share, over its parts, of so many millionths.
    pub(super) fn exceeds(self, millionths: u64, sum: u128, parts: u128) -> bool {
        let mine = self.over.saturating_mul(parts).saturating_mul(MILLION);
        mine > sum.saturating_mul(self.under).saturating_mul(u128::from(millionths))
    }
}

/// Who may suspend whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// A job whose xfactor is at least `factor` millionths of the running job's: (wait + estimate) / estimate, where the wait is all
    /// the time that a job did not run. Nobody, if there is no factor.
    Xfactor {
        /// The suspension factor, in millionths; more than a million.
        factor: Option<u64>,
    },
    /// A job that has less left to run than the running job, by their estimates: the naive criterion, under which jobs may starve.
    Remaining,
}

/// How far apart two remaining times may be.
const LONGEST: u128 = 1 << 64;

impl Criterion {
    /// How urgent a job is. While it works this does not change, under [`Criterion::Xfactor`]; and grows under
    /// [`Criterion::Remaining`], for all running jobs alike.
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

    /// Whether a job of the first rank may suspend one of the second.
    pub(super) fn entitles(self, idle: Rank, running: Rank) -> bool {
        match self {
            Criterion::Xfactor { factor } => factor.is_some_and(|factor| idle.reaches(factor, running)),
            Criterion::Remaining => idle > running,
        }
    }

    /// When a job that does not run may suspend one of that rank at the earliest, if it will by waiting alone.
    pub(super) fn entitled_at(self, entry: &Entry, now: Time, running: Rank) -> Option<Time> {
        let Criterion::Xfactor { factor: Some(factor) } = self else { return None };
        let estimate = ticks(estimate(entry));
        let bar = running.over.checked_mul(estimate)?.checked_mul(u128::from(factor))?;
        let wait = bar.div_ceil(running.under.checked_mul(MILLION)?).saturating_sub(estimate);
        let wait = Span::from_ticks(i64::try_from(wait).ok()?);
        Some(entry.request.submit + ran(entry, now) + wait)
    }
}

/// What a job asked for, a second at least.
pub(super) fn estimate(entry: &Entry) -> Span {
    entry.request.estimate.max(SECOND)
}

const SECOND: Span = Span::from_ticks(1_000_000);

/// For how long a job has worked.
pub(super) fn ran(entry: &Entry, now: Time) -> Span {
    let procs = u128::from(entry.request.procs().max(Procs::ONE));
    i64::try_from(entry.done(now) / procs).map_or(Span::MAX, Span::from_ticks)
}

/// The current slowdown that immediate service goes by: (wait + run) / run. Without end, as long as a job has not run.
pub(super) fn current_slowdown(entry: &Entry, now: Time) -> Rank {
    let run = ran(entry, now);
    let wait = (now - entry.request.submit - run).max(Span::ZERO);
    Rank { over: (ticks(wait) + ticks(run)).max(1), under: ticks(run) }
}

pub(super) fn ticks(span: Span) -> u128 {
    u128::from(span.ticks().unsigned_abs())
}
