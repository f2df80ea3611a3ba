//! The calibration of bounds by the outcomes of earlier forecasts.

use std::collections::{BTreeMap, VecDeque};

use crate::audit::{LEVELS, SizeClass};

/// The waits, in seconds, that are added before a ratio is taken: short waits differ by chance.
const OFFSET: u64 = 60;

/// The number of outcomes of a class that are kept.
const KEPT: usize = 400;

/// The fewest outcomes of a class from which a quantile is taken. Otherwise a wider class serves.
const LEAST: usize = 40;

/// The share of outcomes that a level aims at, in millionths: a little above the level, because a bound promises at least
/// that share.
const AIMS: [u64; LEVELS.len()] = [500_000, 805_000, 957_000];

/// The change of a level after each outcome, in millionths of its error.
const STEP: u64 = 4_000;

/// The two simulated waits of a job, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waits {
    /// With likely runtimes.
    pub(crate) likely: u64,
    /// With requested runtimes.
    pub(crate) requested: u64,
}

/// A class of forecasts: from the narrowest one to that of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Class {
    /// The size of the job.
    size: Option<SizeClass>,
    /// The magnitude of the requested wait.
    magnitude: Option<u32>,
    /// The likely wait over the requested one, in eighths.
    share: Option<u64>,
}

/// The outcomes of a class, as ratios in thousandths, in the order in which they became known.
#[derive(Clone, Debug, Default)]
struct Outcomes {
    /// Wait over likely wait.
    likely: VecDeque<u64>,
    /// Wait over requested wait.
    requested: VecDeque<u64>,
}

/// What became of earlier forecasts.
///
/// A bound is a quantile of the ratios between waits and simulated waits, in the narrowest class with enough outcomes. The
/// rank of the quantile adapts by size class (adaptive conformal inference, Gibbs and Candès 2021): a wait beyond its bound
/// raises it, and each other one lowers it a little. So the share of kept bounds stays near its aim also if the load
/// changes.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    outcomes: BTreeMap<Class, Outcomes>,
    /// The rank of each level by size, in millionths.
    ranks: BTreeMap<SizeClass, [u64; LEVELS.len()]>,
}

impl Waits {
    fn classes(self, size: SizeClass) -> [Class; 4] {
        let magnitude = Some((self.requested / OFFSET + 1).ilog2());
        let share = Some((8 * (self.likely + OFFSET) / (self.requested + OFFSET)).min(9));
        [
            Class { size: Some(size), magnitude, share },
            Class { size: None, magnitude, share },
            Class { size: None, magnitude: None, share },
            Class { size: None, magnitude: None, share: None },
        ]
    }
}

impl Calibration {
    /// Returns the upper bounds of the wait for each of [`LEVELS`], in seconds. They ascend.
    pub(crate) fn bounds(&self, size: SizeClass, waits: Waits) -> [u64; LEVELS.len()] {
        let classes = waits.classes(size);
        let known = classes
            .iter()
            .find_map(|class| self.outcomes.get(class).filter(|outcomes| outcomes.requested.len() >= LEAST));
        let Some(known) = known else { return [waits.likely, waits.requested, waits.requested] };
        let ranks = self.ranks.get(&size).copied().unwrap_or(AIMS);
        let by_likely = scaled(quantile(&known.likely, ranks[0]), waits.likely);
        let median = by_likely.min(scaled(quantile(&known.requested, 900_000), waits.requested));
        let [_, most_likely, nearly_sure] =
            ranks.map(|rank| scaled(quantile(&known.requested, rank), waits.requested));
        [median, most_likely.max(median), nearly_sure.max(most_likely).max(median)]
    }

    /// Adds the outcome of a forecast: the wait of a job whose bounds were these.
    pub(crate) fn add(&mut self, size: SizeClass, waits: Waits, bounds: [u64; LEVELS.len()], wait: u64) {
        for class in waits.classes(size) {
            let outcomes = self.outcomes.entry(class).or_default();
            push(&mut outcomes.likely, ratio(wait, waits.likely));
            push(&mut outcomes.requested, ratio(wait, waits.requested));
        }
        let ranks = self.ranks.entry(size).or_insert(AIMS);
        for ((rank, aim), bound) in ranks.iter_mut().zip(AIMS).zip(bounds) {
            let (up, down) = (STEP * aim / 1_000_000, STEP * (1_000_000 - aim) / 1_000_000);
            *rank = if wait > bound { (*rank + up).min(1_000_000) } else { rank.saturating_sub(down) };
        }
    }
}

fn push(ratios: &mut VecDeque<u64>, ratio: u64) {
    if ratios.len() == KEPT {
        ratios.pop_front();
    }
    ratios.push_back(ratio);
}

/// Returns (wait + offset) / (simulated + offset) in thousandths, rounded up.
fn ratio(wait: u64, simulated: u64) -> u64 {
    ((wait + OFFSET) * 1000).div_ceil(simulated + OFFSET)
}

/// Returns the wait of that ratio.
fn scaled(ratio: u64, simulated: u64) -> u64 {
    (ratio * (simulated + OFFSET) / 1000).saturating_sub(OFFSET)
}

/// Returns the value of this rank, in millionths, by nearest rank.
fn quantile(values: &VecDeque<u64>, rank: u64) -> u64 {
    let mut sorted: Vec<u64> = values.iter().copied().collect();
    let place = (sorted.len() as u64 * rank).div_ceil(1_000_000).max(1) - 1;
    let place = usize::try_from(place).unwrap_or(0).min(sorted.len() - 1);
    *sorted.select_nth_unstable(place).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_and_back() {
        for (wait, simulated) in [(0, 0), (7, 3600), (3600, 7), (86_400, 86_399)] {
            let back = scaled(ratio(wait, simulated), simulated);
            assert!(back >= wait && back <= wait + (simulated + OFFSET) / 1000, "{wait} {simulated} {back}");
        }
    }

    #[test]
    fn the_bounds_are_kept_as_often_as_they_aim_at() {
        let mut calibration = Calibration::default();
        let size = SizeClass::new(4);
        let (mut kept, mut all) = ([0; LEVELS.len()], 0);
        for number in 0..20_000_u64 {
            let draw = miserly_core::draw(7, 1, number);
            let requested = 600 + draw % 50_000;
            let wait = requested * (draw / 65_536 % 1000) / 1000;
            let waits = Waits { likely: requested / 2, requested };
            let bounds = calibration.bounds(size, waits);
            calibration.add(size, waits, bounds, wait);
            if number >= 2000 {
                all += 1;
                for (kept, bound) in kept.iter_mut().zip(bounds) {
                    *kept += u64::from(wait <= bound);
                }
            }
        }
        for (kept, aim) in kept.into_iter().zip(AIMS) {
            let share = kept * 1_000_000 / all;
            assert!(share.abs_diff(aim) < 15_000, "{share} {aim}");
        }
    }
}
