//! The urgency of a job, and the suspensions that it permits.

use std::cmp::Ordering;

use miserly_core::{Entry, Pace, Procs, Span, Time};

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
        let words = [self.over, self.under, other.over, other.under].map(u64::try_from);
        if let [Ok(over), Ok(under), Ok(its_over), Ok(its_under)] = words {
            // Products of 64 bits are exact, and many times as fast.
            let [mine, its] =
                [(over, its_under), (its_over, under)].map(|(a, b)| u128::from(a) * u128::from(b));
            return mine.cmp(&its);
        }
        let mine = self.over.saturating_mul(other.under);
        mine.cmp(&other.over.saturating_mul(self.under))
    }
}

/// A million. Ratios that a user gives are counted in millionths.
pub(super) const MILLION: u128 = 1_000_000;

impl Rank {
    /// Returns whether it is at least this multiple of the other rank, in millionths.
    ///
    /// A multiple of one must be exceeded: two jobs of equal rank would suspend each other at one
    /// instant without end.
    fn reaches(self, millionths: u64, other: Rank) -> bool {
        let mine = self.over.checked_mul(other.under).and_then(|product| product.checked_mul(MILLION));
        let bar = other.over.saturating_mul(self.under).saturating_mul(u128::from(millionths));
        // A product that overflows permits nothing.
        mine.is_some_and(|mine| mine > bar || mine == bar && !is_one(millionths))
    }

    /// Returns whether it exceeds `sum / parts` times `millionths`.
    pub(super) fn exceeds(self, millionths: u64, sum: u128, parts: u128) -> bool {
        let mine = self.over.saturating_mul(parts).saturating_mul(MILLION);
        mine > sum.saturating_mul(self.under).saturating_mul(u128::from(millionths))
    }
}

/// Returns whether a number of millionths is one.
fn is_one(millionths: u64) -> bool {
    u128::from(millionths) == MILLION
}

/// The condition under which a job may suspend another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Criterion {
    /// By xfactor: (wait + estimate) / estimate, where the wait is all the time that a job did not
    /// run.
    ///
    /// The job's xfactor must be at least `factor` millionths of the running job's, and more than the
    /// running job's. Without a factor no job may suspend another one.
    Xfactor {
        /// The suspension factor, in millionths, at least a million.
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
        self.rank_after((entry.request.submit, ran(entry, now)), ticks(estimate(entry)), now)
    }

    /// Returns the urgency of a job with this submission, time of work and estimate.
    fn rank_after(self, (submit, ran): (Time, Span), estimate: u128, now: Time) -> Rank {
        match self {
            Criterion::Xfactor { .. } => {
                let wait = (now - submit - ran).max(Span::ZERO);
                Rank { over: ticks(wait) + estimate, under: estimate }
            }
            Criterion::Remaining => {
                let left = estimate.saturating_sub(ticks(ran));
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
        let unit = running.under.checked_mul(MILLION)?;
        let reached = if is_one(factor) { bar / unit + 1 } else { bar.div_ceil(unit) };
        let wait = reached.saturating_sub(estimate);
        let wait = Span::from_ticks(i64::try_from(wait).ok()?);
        Some(entry.request.submit + ran(entry, now) + wait)
    }
}

/// What the rank of a job depends on until it starts to run or stops.
///
/// It gives the rank without the division of the work by the processors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    submit: Time,
    /// In ticks.
    estimate: u64,
    /// The time for which it had worked at `at`.
    ran: Span,
    at: Time,
    /// Whether it has worked since then.
    works: bool,
}

impl Facts {
    pub(super) fn new(entry: &Entry) -> Facts {
        let at = entry.progress.at;
        // On fewer processors than requested, or at a part of the time, the work of a tick is not a
        // tick.
        let all = entry.progress.procs == entry.request.procs() && entry.progress.pace == Pace::WHOLE;
        debug_assert!(all || entry.progress.procs.is_zero(), "these policies run jobs at full speed");
        Facts {
            submit: entry.request.submit,
            estimate: estimate(entry).ticks().unsigned_abs(),
            ran: ran(entry, at),
            at,
            works: !entry.progress.procs.is_zero(),
        }
    }

    /// Returns the urgency of the job, as [`Criterion::rank`] does.
    pub(super) fn rank(&self, criterion: Criterion, now: Time) -> Rank {
        let since = if self.works { (now - self.at).max(Span::ZERO) } else { Span::ZERO };
        criterion.rank_after((self.submit, self.ran + since), self.estimate.into(), now)
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

#[cfg(test)]
mod tests {
    use miserly_core::{Progress, Request, Resources, draw};

    use super::*;

    #[test]
    fn facts_give_the_rank_of_the_entry() {
        for nth in 0..20_000 {
            let random = |number, most: u64| i64::try_from(draw(11, nth, number) % most).unwrap();
            let time = |number| Time::from_ticks(random(number, 5_000_000));
            let procs = 1 + draw(11, nth, 0) % 7;
            let estimate = Span::from_ticks(random(1, 6_000_000));
            let mut entry = Entry::waiting(Request::new(nth, time(2), estimate, Resources::cpus(procs)), 0);
            let working = if random(3, 2) == 0 { Procs::ZERO } else { Procs::new(procs) };
            let done = u128::from(draw(11, nth, 4) % 9_000_000);
            entry.progress = Progress { done, at: time(5), procs: working, ..Progress::default() };
            let now = time(6);
            for criterion in [Criterion::Remaining, Criterion::Xfactor { factor: None }] {
                let (slow, fast) = (criterion.rank(&entry, now), Facts::new(&entry).rank(criterion, now));
                assert_eq!((slow.over, slow.under), (fast.over, fast.under), "{entry:?} at {now}");
            }
        }
    }

    #[test]
    fn small_ranks_compare_as_large_ones() {
        for nth in 0..20_000 {
            let random = |number, bits: u32| u128::from(draw(12, nth, number) >> (64 - bits)) + 1;
            let ranks = [0, 2].map(|first| Rank { over: random(first, 8), under: random(first + 1, 8) });
            let [one, other] = ranks;
            let large = |rank: Rank| Rank { over: rank.over << 40, under: rank.under << 20 };
            assert_eq!(one.cmp(&other), large(one).cmp(&large(other)));
            assert_eq!(one.cmp(&other), (one.over * other.under).cmp(&(other.over * one.under)));
            let huge = |rank: Rank| Rank { over: rank.over << 45, under: rank.under << 61 };
            assert_eq!(one.cmp(&other), huge(one).cmp(&huge(other)));
        }
    }
}
