//! The limits of tunable selective suspension: what has become of jobs of each category.

use miserly_core::{Category, Desk, Entry, Ledger, Span, Time};

use super::rank::{Rank, estimate, ran, ticks};

/// From when on a job cannot be suspended any more: when its xfactor is more than so many times the mean slowdown of its category.
///
/// The category goes by the estimate: policies know no runtimes.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// How many times, in millionths.
    pub factor: u64,
    /// The mean slowdown of each category, by length and then by width, in millionths; learned from the jobs that end, if not given.
    pub means: Option<[u64; Category::COUNT]>,
}

impl Limits {
    /// Whether a job of that rank is beyond its limit.
    pub(super) fn protect(&self, ledger: &Ledger, entry: &Entry, rank: Rank) -> bool {
        let category = category(entry);
        let (sum, parts) = match &self.means {
            Some(means) => (u128::from(means[category]), 1),
            None => (ledger.tally(category).sum, u128::from(ledger.tally(category).count)),
        };
        // Nothing is known of a category of which nobody has ended.
        parts > 0 && rank.exceeds(self.factor, sum, parts * 1_000_000)
    }
}

/// Slowdowns of jobs that ended, which are to be added to the tallies of the ledger.
#[derive(Debug, Default)]
pub(super) struct Lessons(Vec<(usize, u64)>);

impl Lessons {
    /// Notes a job that ends now.
    pub(super) fn note(&mut self, entry: &Entry, now: Time) {
        self.0.push((category(entry), bounded_slowdown(entry, now)));
    }

    pub(super) fn write(&mut self, desk: &mut Desk<'_>) {
        for (category, slowdown) in self.0.drain(..) {
            desk.tally(category, slowdown);
        }
    }
}

/// Its place among the categories.
fn category(entry: &Entry) -> usize {
    Category::of(estimate(entry), entry.request.procs()).index()
}

/// What the slides measure: (wait + max(runtime, 10 s)) / max(runtime, 10 s), in millionths.
fn bounded_slowdown(entry: &Entry, now: Time) -> u64 {
    let run = ran(entry, now);
    let wait = (now - entry.request.submit - run).max(Span::ZERO);
    let bounded = ticks(run.max(TEN_SECONDS));
    u64::try_from((ticks(wait) + bounded) * 1_000_000 / bounded).unwrap_or(u64::MAX)
}

const TEN_SECONDS: Span = Span::from_ticks(10_000_000);
