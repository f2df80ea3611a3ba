//! The limits of tunable selective suspension: mean slowdowns by job category.

use miserly_classes::Category;
use miserly_core::{Context, Entry, Ledger, Persistent, Span, Time, join_words, split_words};

use super::rank::{Rank, estimate, ran, ticks};

/// The limit beyond which a job is not suspended: a multiple of the mean slowdown of its category.
///
/// It applies to the job's xfactor. The category follows from the estimate, because policies do not
/// know runtimes.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// The multiple, in millionths.
    pub factor: u64,
    /// The mean slowdown of each category, by length and then by width, in millionths.
    ///
    /// If absent, the means are learned from the jobs that end.
    pub means: Option<[u64; Category::COUNT]>,
    /// The slowdowns of the jobs that ended, if no means are given. The ledger keeps a copy.
    learned: Slowdowns,
}

impl Limits {
    /// Returns limits with these mean slowdowns, or with learned ones.
    pub fn new(factor: u64, means: Option<[u64; Category::COUNT]>) -> Limits {
        Limits { factor, means, learned: Slowdowns::default() }
    }

    /// Loads the slowdowns that a ledger keeps.
    pub(super) fn learn_from(&mut self, ledger: &Ledger) {
        self.learned = ledger.policy_state();
    }

    /// Returns whether a job of that rank is beyond its limit.
    pub(super) fn protect(&self, entry: &Entry, rank: Rank) -> bool {
        let category = category(entry);
        let (sum, parts) = match &self.means {
            Some(means) => (u128::from(means[category]), 1),
            None => self.learned.sum_and_count(category),
        };
        // The mean of a category without an ended job is unknown.
        parts > 0 && rank.exceeds(self.factor, sum, parts * 1_000_000)
    }
}

/// The slowdowns of the jobs that ended, by category: sums in millionths, and numbers of jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Slowdowns([(u128, u64); Category::COUNT]);

impl Slowdowns {
    fn sum_and_count(&self, category: usize) -> (u128, u128) {
        let (sum, jobs) = self.0[category];
        (sum, jobs.into())
    }
}

impl Persistent for Slowdowns {
    const NAME: &'static str = "tss/slowdowns";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        for (sum, jobs) in self.0 {
            words.extend(split_words(sum));
            words.push(jobs);
        }
    }

    fn decode(_version: u32, words: &[u64]) -> Option<Slowdowns> {
        let triples = words.chunks_exact(3);
        let all: Vec<(u128, u64)> =
            triples.map(|triple| (join_words([triple[0], triple[1]]), triple[2])).collect();
        all.try_into().ok().map(Slowdowns)
    }
}

/// Slowdowns of jobs that ended and are not counted yet.
#[derive(Debug, Default)]
pub(super) struct SlowdownStats(Vec<(usize, u64)>);

impl SlowdownStats {
    /// Records a job that ends now.
    pub(super) fn note(&mut self, entry: &Entry, now: Time) {
        self.0.push((category(entry), bounded_slowdown(entry, now)));
    }

    /// Counts the recorded jobs, and stores the sums in the ledger.
    pub(super) fn write(&mut self, limits: &mut Limits, context: &mut Context<'_>) {
        for (category, slowdown) in &self.0 {
            let (sum, jobs) = &mut limits.learned.0[*category];
            *sum += u128::from(*slowdown);
            *jobs += 1;
        }
        if !self.0.is_empty() {
            self.0.clear();
            context.set_policy_state(&limits.learned);
        }
    }
}

/// Returns the index of the job's category.
fn category(entry: &Entry) -> usize {
    Category::for_job(estimate(entry), entry.request.procs()).index()
}

/// Returns the bounded slowdown of the slides: (wait + max(runtime, 10 s)) / max(runtime, 10 s), in
/// millionths.
fn bounded_slowdown(entry: &Entry, now: Time) -> u64 {
    let run = ran(entry, now);
    let wait = (now - entry.request.submit - run).max(Span::ZERO);
    let bounded = ticks(run.max(TEN_SECONDS));
    u64::try_from((ticks(wait) + bounded) * 1_000_000 / bounded).unwrap_or(u64::MAX)
}

const TEN_SECONDS: Span = Span::from_ticks(10_000_000);
