//! Criteria of queue orders.

use miserly_core::{Entry, Request, Span, Time, draw};

/// The criterion that orders jobs, before any weight on the delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Criterion {
    /// First come, first served.
    #[default]
    Arrival,
    /// Shortest estimate first (Zotkin et al. §5).
    Shortest,
    /// Longest estimate first.
    Longest,
    /// Fewest processors first.
    Narrowest,
    /// Most processors first.
    Widest,
    /// Least estimate x processors first (Zotkin et al. §5.1).
    Smallest,
    /// Most estimate x processors first.
    Largest,
    /// Largest random number first (Zotkin et al. §6).
    Random,
    /// Largest random number / estimate first (Zotkin et al. §6).
    RandomPerLength,
}

/// The time at which the random numbers of an order are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Draw {
    /// One number for each job, which it keeps.
    #[default]
    Once,
    /// New numbers at each pass, equal for all passes of one instant.
    Pass,
}

/// Separates the draws of orders from the other draws of a run, which count from 0 up.
const OF_ORDERS: u64 = 1 << 63;

impl Criterion {
    /// Returns whether the place of a job depends on its estimate.
    pub(super) fn uses_estimates(self) -> bool {
        use Criterion::{Arrival, Narrowest, Random, Widest};
        !matches!(self, Arrival | Narrowest | Widest | Random)
    }

    /// Every criterion, with its written name and its description.
    pub const ALL: [(Criterion, &'static str, &'static str); 9] = [
        (Criterion::Arrival, "arrival", "first come, first served"),
        (Criterion::Shortest, "shortest", "shortest estimate first"),
        (Criterion::Longest, "longest", "longest estimate first"),
        (Criterion::Narrowest, "narrowest", "fewest processors first"),
        (Criterion::Widest, "widest", "most processors first"),
        (Criterion::Smallest, "smallest", "smallest area first: estimate x processors"),
        (Criterion::Largest, "largest", "largest area first"),
        (Criterion::Random, "random", "largest random number first"),
        (Criterion::RandomPerLength, "random/length", "largest random number / estimate first"),
    ];

    /// Returns whether the criterion draws random numbers.
    pub const fn is_random(self) -> bool {
        matches!(self, Criterion::Random | Criterion::RandomPerLength)
    }

    /// Returns the exact rank, if there is one. Smaller comes first.
    pub(super) fn rank(self, entry: &Entry) -> Option<i64> {
        let estimate = entry.likely_runtime().ticks();
        // No machine has more processors than an i64 counts.
        let procs = i64::try_from(entry.request.procs().get()).unwrap_or(i64::MAX);
        Some(match self {
            Criterion::Arrival => 0,
            Criterion::Shortest => estimate,
            Criterion::Longest => -estimate,
            Criterion::Narrowest => procs,
            Criterion::Widest => -procs,
            Criterion::Smallest => estimate.saturating_mul(procs),
            Criterion::Largest => -estimate.saturating_mul(procs),
            Criterion::Random | Criterion::RandomPerLength => return None,
        })
    }

    /// Returns the criterion as a number to which a weighted delay can be added. Larger comes
    /// first.
    ///
    /// With r the estimate in seconds, at least 1, p the processors, and u the random number. The
    /// random number is in [0, 1).
    pub(super) fn value(self, entry: &Entry, random: f64) -> f64 {
        let r = entry.likely_runtime().max(SECOND).as_secs_f64();
        let p = entry.request.procs().get() as f64;
        match self {
            Criterion::Arrival => 0.0,
            Criterion::Shortest => 1.0 / r,
            Criterion::Longest => r,
            Criterion::Narrowest => 1.0 / p,
            Criterion::Widest => p,
            Criterion::Smallest => 1.0 / (r * p),
            Criterion::Largest => r * p,
            Criterion::Random => random,
            Criterion::RandomPerLength => random / r,
        }
    }
}

/// The lower bound of an estimate used as a divisor.
pub(super) const SECOND: Span = Span::from_ticks(1_000_000);

impl Draw {
    /// Returns the job's random number in [0, 1), a multiple of 2^-53, as of `now`.
    pub(super) fn random(self, seed: u64, request: &Request, now: Time) -> f64 {
        let number = match self {
            Draw::Once => OF_ORDERS,
            Draw::Pass => OF_ORDERS | now.ticks().cast_unsigned(),
        };
        (draw(seed, request.number, number) >> 11) as f64 / (1u64 << 53) as f64
    }
}
