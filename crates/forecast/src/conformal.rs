//! Bounds of live forecasts that follow from what came of earlier ones, by class.

use std::collections::{BTreeMap, VecDeque};

use crate::LEVELS;

/// The number of outcomes of a class that are kept.
const KEPT: usize = 400;

/// The fewest outcomes of a class from which bounds follow.
const LEAST: usize = 60;

/// The fewest of them that are apart from each other. Forecasts of one instant have one future, and fail together.
const LEAST_APART: usize = 20;

/// The share of a wait, as its inverse, by which the forecasts of two outcomes are apart at least.
const APART: i64 = 10;

/// The seconds that are added to the waits of a ratio, so that short ones do not count too much.
const SHORT: u64 = 60;

/// The unit of a ratio.
const UNIT: u64 = 10_000;

/// The unit of a rank.
const ALL: i64 = 1_000_000;

/// The change of a rank after an outcome, as the inverse of its part of the error.
const STEP: i64 = 100;

/// The seconds to the bounds of [`LEVELS`]. They ascend.
pub type Waits = [u64; LEVELS.len()];

/// A forecast without an outcome.
#[derive(Clone, Copy, Debug)]
struct Open<C> {
    class: C,
    /// The simulated waits of each level.
    simulated: Waits,
    /// The bounds that were given, if the class had enough outcomes.
    given: Option<Waits>,
    /// The instant, in seconds.
    made: i64,
}

/// An outcome.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// The ratios of the wait to the simulated ones, in units.
    ratios: Waits,
    /// Whether the job started. Otherwise the wait was longer.
    has_started: bool,
    /// Whether the forecast is apart from those before.
    is_apart: bool,
}

/// The outcomes of a class.
#[derive(Clone, Debug)]
struct Outcomes {
    kept: VecDeque<Outcome>,
    last_apart: Option<i64>,
    /// The rank of each level, in millionths.
    ranks: [i64; LEVELS.len()],
}

impl Default for Outcomes {
    fn default() -> Outcomes {
        Outcomes {
            kept: VecDeque::new(),
            last_apart: None,
            ranks: LEVELS.map(|level| i64::from(level) * ALL / 100),
        }
    }
}

/// The outcomes of forecasts by class, and bounds that follow from them.
///
/// Simulated waits know no later arrivals, no delays of the scheduler and no error of the simulation. The ratio of a wait to the
/// simulated one has all of these. The bound of a level is the multiple of the simulated wait that its share of earlier jobs of the
/// class kept (conformal prediction). Two rules make it hold on a queue:
///
/// - A job that still waits counts as well: its ratio is at least the present one (the estimate of Kaplan and Meier). Otherwise only
///   short waits would be known at first.
/// - The share adapts: a wait beyond its bound raises it, and each other one lowers it a little (adaptive conformal inference, Gibbs
///   and Candès 2021).
///
/// A class has no bounds before it has 60 outcomes, of which 20 are apart: forecasts of instants that differ by a tenth of the wait.
#[derive(Clone, Debug)]
pub struct Conformal<C, J> {
    classes: BTreeMap<C, Outcomes>,
    open: BTreeMap<J, Open<C>>,
}

impl<C, J> Default for Conformal<C, J> {
    fn default() -> Conformal<C, J> {
        Conformal { classes: BTreeMap::new(), open: BTreeMap::new() }
    }
}

impl<C: Ord + Clone, J: Ord> Conformal<C, J> {
    /// Returns the bounds of the wait of a job of a class at an instant, in seconds, from the simulated waits of each level. `None`: too
    /// little is known.
    pub fn bounds(&self, class: &C, simulated: Waits, now: i64) -> Option<Waits> {
        let outcomes = self.classes.get(class)?;
        let started = outcomes.kept.iter().filter(|outcome| outcome.has_started).count();
        let apart = outcomes.kept.iter().filter(|outcome| outcome.is_apart).count();
        if started < LEAST || apart < LEAST_APART {
            return None;
        }
        let open: Vec<&Open<C>> = self.open.values().filter(|open| open.class == *class).collect();
        let mut bounds = [0; LEVELS.len()];
        let mut least = 0;
        for (level, bound) in bounds.iter_mut().enumerate() {
            let known = outcomes.kept.iter().map(|outcome| (outcome.ratios[level], outcome.has_started));
            let waits = open.iter().map(|open| {
                let waited = u64::try_from(now - open.made).unwrap_or(0);
                (ratio(waited, open.simulated[level]), false)
            });
            let ratio = quantile(known.chain(waits).collect(), outcomes.ranks[level]);
            least = wait_of(ratio, simulated[level]).max(least);
            *bound = least;
        }
        Some(bounds)
    }

    /// Adds a forecast that is made now, and returns its bounds as [`bounds`](Conformal::bounds) does.
    pub fn add(&mut self, job: J, class: C, simulated: Waits, made: i64) -> Option<Waits> {
        let given = self.bounds(&class, simulated, made);
        self.open.insert(job, Open { class, simulated, given, made });
        given
    }

    /// Adds the outcome of a forecast: the job started at this second.
    pub fn settle(&mut self, job: &J, start: i64) {
        let Some((outcomes, open, wait)) = self.end(job, start, true) else { return };
        let Some(given) = open.given else { return };
        for ((rank, level), bound) in outcomes.ranks.iter_mut().zip(LEVELS).zip(given) {
            let level = i64::from(level) * ALL / 100;
            let error = if wait > bound { level } else { level - ALL };
            *rank = (*rank + error / STEP).clamp(0, ALL);
        }
    }

    /// Ends a forecast without an outcome: the job waited until this second at least.
    pub fn leave(&mut self, job: &J, until: i64) {
        self.end(job, until, false);
    }

    fn end(&mut self, job: &J, at: i64, has_started: bool) -> Option<(&mut Outcomes, Open<C>, u64)> {
        let open = self.open.remove(job)?;
        let wait = u64::try_from(at - open.made).unwrap_or(0);
        let outcomes = self.classes.entry(open.class.clone()).or_default();
        let distance = i64::try_from(wait).unwrap_or(i64::MAX) / APART + 1;
        let is_apart =
            outcomes.last_apart.is_none_or(|last| open.made.abs_diff(last) >= distance.unsigned_abs());
        if is_apart {
            outcomes.last_apart = Some(open.made);
        }
        if outcomes.kept.len() == KEPT {
            outcomes.kept.pop_front();
        }
        let ratios = open.simulated.map(|simulated| ratio(wait, simulated));
        outcomes.kept.push_back(Outcome { ratios, has_started, is_apart });
        Some((outcomes, open, wait))
    }
}

/// Returns the ratio of a wait to a simulated one, in units, rounded up.
fn ratio(wait: u64, simulated: u64) -> u64 {
    wait.saturating_add(SHORT).saturating_mul(UNIT).div_ceil(simulated.saturating_add(SHORT))
}

/// Returns the wait of a ratio to a simulated one.
fn wait_of(ratio: u64, simulated: u64) -> u64 {
    let wait = u128::from(ratio) * u128::from(simulated.saturating_add(SHORT)) / u128::from(UNIT);
    u64::try_from(wait).unwrap_or(u64::MAX).saturating_sub(SHORT)
}

/// Returns the least value that a share of all values does not exceed, in millionths. Of a value that is not exact, only a lower bound is
/// known. Where no exact value is large enough, it is the largest value.
///
/// As one more value is to come, the share is that of a number of values that is larger by one.
fn quantile(mut values: Vec<(u64, bool)>, rank: i64) -> u64 {
    // An exact value comes before an equal lower bound.
    values.sort_unstable_by_key(|(value, is_exact)| (*value, !is_exact));
    let count = values.len() as f64;
    let wanted = rank as f64 / ALL as f64 * (count + 1.0) / count.max(1.0);
    let mut beyond = 1.0;
    for (nth, (value, is_exact)) in values.iter().enumerate() {
        if *is_exact {
            beyond *= 1.0 - 1.0 / (count - nth as f64);
            if 1.0 - beyond >= wanted - 1e-9 {
                return *value;
            }
        }
    }
    values.last().map_or(0, |(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_counts_those_that_still_wait() {
        let exact = |values: &[u64]| values.iter().map(|value| (*value, true)).collect::<Vec<_>>();
        assert_eq!(quantile(exact(&[4, 1, 3, 2]), 500_000), 3);
        assert_eq!(quantile(exact(&[4, 1, 3, 2]), 790_000), 4);
        // Of those that wait longer than 2, half are above 3.
        let mut some = exact(&[1, 2, 3, 9]);
        some.extend([(2, false), (2, false)]);
        assert_eq!(quantile(some.clone(), 500_000), 3);
        assert_eq!(quantile(exact(&[1, 2, 3, 9]), 400_000), 2);
        assert_eq!(quantile(some, 900_000), 9);
    }

    #[test]
    fn a_class_needs_outcomes_of_several_instants() {
        let mut known: Conformal<&str, u64> = Conformal::default();
        for job in 0..100 {
            known.add(job, "batch", [100, 200, 300], 0);
            known.settle(&job, 400);
        }
        assert_eq!(known.bounds(&"batch", [100, 200, 300], 1_000), None);
        for job in 100..200 {
            let made = 1_000 * i64::try_from(job).unwrap();
            known.add(job, "batch", [100, 200, 300], made);
            known.settle(&job, made + 400);
        }
        // Each wait is 400 s, rounded up.
        let bounds = known.bounds(&"batch", [100, 200, 300], 1_000_000).unwrap();
        assert!(bounds.iter().all(|bound| (400..=401).contains(bound)), "{bounds:?}");
        assert_eq!(known.bounds(&"other", [1, 2, 3], 1_000_000), None);
        let twice = known.bounds(&"batch", [260, 460, 660], 1_000_000).unwrap();
        assert!(twice.iter().all(|bound| (860..=862).contains(bound)), "{twice:?}");
    }
}
