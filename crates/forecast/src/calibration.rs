//! The calibration of bounds by the outcomes of earlier forecasts.

use std::collections::{BTreeMap, VecDeque};

use crate::audit::{LEVELS, SizeClass};

/// The number of outcomes of a class that are kept.
const KEPT: usize = 400;

/// The fewest outcomes of a class from which a quantile is taken. Otherwise a wider class serves.
const LEAST: usize = 40;

/// The share of outcomes that a level aims at, in millionths: a little above the level, because a bound promises at least
/// that share.
const AIMS: [u64; LEVELS.len()] = [500_000, 805_000, 957_000];

/// The rank at which no known outcome is far enough.
const HIGHEST: u64 = 999_000;

/// The change of a rank after each outcome, in millionths of its error.
const STEP: u64 = 4_000;

/// The fewest outcomes of a class that are apart from each other. Forecasts of one instant have one future, and fail together.
const LEAST_APART: usize = 10;

/// The share of a wait, as its inverse, by which the forecasts of two outcomes are apart at least.
const APART: i64 = 10;

/// The seconds that are added to the waits of a ratio, so that short ones do not count too much.
const SHORT: u64 = 10;

/// A step of a scale, in parts.
const PART: u64 = 1000;

/// The simulated waits of a job, as a scale on which its wait has a place.
///
/// Place 0 is no wait, and place `k` is the k-th draw. The last place is the wait with requested runtimes. Between them
/// places are interpolated, and beyond the last one they grow with the ratio to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scale {
    /// Seconds, ascending, without the 0.
    marks: Vec<u64>,
}

impl Scale {
    /// Returns the scale of these draws, in seconds and ascending, and of the wait with requested runtimes.
    pub(crate) fn new(draws: &[u64], requested: u64) -> Scale {
        let mut marks: Vec<u64> = draws.iter().map(|draw| (*draw).min(requested)).collect();
        marks.push(requested);
        Scale { marks }
    }

    /// Returns the simulated waits of each of [`LEVELS`], in seconds.
    pub(crate) fn simulated(&self) -> [u64; LEVELS.len()] {
        AIMS.map(|aim| self.wait(aim))
    }

    fn last(&self) -> u64 {
        self.marks.last().copied().unwrap_or(0)
    }

    /// Returns the median of the draws (of two in the middle, the lower).
    fn median(&self) -> u64 {
        let draws = self.marks.len().saturating_sub(1);
        self.marks.get(draws.saturating_sub(1) / 2).copied().unwrap_or(0)
    }

    /// Returns the ratio of a wait to the median of the draws, in parts.
    fn ratio(&self, wait: u64) -> u64 {
        PART * (wait + SHORT) / (self.median() + SHORT)
    }

    /// Returns the wait of a ratio, in parts.
    fn wait_of_ratio(&self, ratio: u64) -> u64 {
        (ratio.saturating_mul(self.median() + SHORT) / PART).saturating_sub(SHORT)
    }

    /// Returns the place of a wait, in parts, relative to the number of marks.
    fn place(&self, wait: u64) -> u64 {
        let above = self.marks.partition_point(|mark| *mark < wait);
        let count = self.marks.len() as u64;
        let Some(upper) = self.marks.get(above).copied() else {
            return PART * PART + PART * (wait - self.last()) / (self.last() + 60);
        };
        let lower = above.checked_sub(1).map_or(0, |below| self.marks[below]);
        let within = if upper > lower { PART * (wait - lower) / (upper - lower) } else { PART };
        (above as u64 * PART + within) * PART / count
    }

    /// Returns the wait at a place, in parts.
    fn wait(&self, place: u64) -> u64 {
        let count = self.marks.len() as u64;
        if place > PART * PART {
            return self.last() + (place - PART * PART) * (self.last() + 60) / PART;
        }
        let at = place * count / PART;
        let (above, within) = (at / PART, at % PART);
        let mark = |number: u64| match usize::try_from(number) {
            Ok(0) | Err(_) => 0,
            Ok(number) => self.marks[(number - 1).min(self.marks.len() - 1)],
        };
        let (lower, upper) = (mark(above), mark(above + 1));
        lower + (upper - lower) * within / PART
    }
}

/// A class of forecasts: from the narrowest one to that of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Class {
    /// The size of the job.
    size: Option<SizeClass>,
    /// The magnitude of the wait with requested runtimes.
    magnitude: Option<u32>,
}

/// The wait that followed a forecast.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    place: u64,
    ratio: u64,
    /// Whether its forecast is apart from those counted before.
    is_apart: bool,
}

/// The outcomes of a class.
#[derive(Clone, Debug, Default)]
struct Outcomes {
    kept: VecDeque<Outcome>,
    /// The instant of the last forecast that is apart from those before, in seconds.
    last_apart: Option<i64>,
}

impl Outcomes {
    /// Adds the outcome of a forecast that was made at this second.
    fn add(&mut self, scale: &Scale, made: i64, wait: u64) {
        let distance = i64::try_from(wait).unwrap_or(i64::MAX) / APART + 1;
        let is_apart = self.last_apart.is_none_or(|last| made >= last.saturating_add(distance));
        if is_apart {
            self.last_apart = Some(made);
        }
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(Outcome { place: scale.place(wait), ratio: scale.ratio(wait), is_apart });
    }

    fn places(&self) -> impl Iterator<Item = u64> {
        self.kept.iter().map(|outcome| outcome.place)
    }

    fn apart(&self) -> usize {
        self.kept.iter().filter(|outcome| outcome.is_apart).count()
    }
}

/// What became of earlier forecasts.
///
/// The wait of a job has a place among its simulated waits. A bound is the wait at a place that was not exceeded by a
/// share of the jobs, in the narrowest class with enough outcomes. That share adapts by size class (adaptive conformal
/// inference, Gibbs and Candès 2021): a wait beyond its bound raises it, and each other one lowers it a little. So the
/// share of kept bounds stays near its aim also if the load changes.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    /// The waits, in the order in which they became known.
    outcomes: BTreeMap<Class, Outcomes>,
    /// The rank of each level by size, in millionths.
    ranks: BTreeMap<SizeClass, [u64; LEVELS.len()]>,
}

fn classes(size: SizeClass, scale: &Scale) -> [Class; 3] {
    let magnitude = Some((scale.last() / 60 + 1).ilog2());
    [
        Class { size: Some(size), magnitude },
        Class { size: None, magnitude },
        Class { size: None, magnitude: None },
    ]
}

impl Calibration {
    /// Returns the upper bounds of the wait for each of [`LEVELS`], in seconds. They ascend.
    pub(crate) fn bounds(&self, size: SizeClass, scale: &Scale) -> [u64; LEVELS.len()] {
        let ranks = self.ranks.get(&size).copied().unwrap_or(AIMS);
        let Some(known) = self.known(size, scale) else { return scale.simulated() };
        let [median, most, nearly_all] = quantiles(known.places(), ranks).map(|place| scale.wait(place));
        [median, most.max(median), nearly_all.max(most).max(median)]
    }

    /// Returns the level of the bound that a wait just keeps, in millionths: the share of earlier outcomes whose place is
    /// not above that of the wait. Without enough outcomes, it is the place among the simulated waits.
    pub(crate) fn level(&self, size: SizeClass, scale: &Scale, wait: u64) -> u64 {
        let place = scale.place(wait);
        match self.known(size, scale) {
            Some(known) => {
                let within = known.places().filter(|other| *other <= place).count() as u64;
                within * 1_000_000 / known.kept.len() as u64
            }
            None => place.min(1_000_000),
        }
    }

    /// Returns the upper bounds of the wait of a job of a live queue, or `None` if too few forecasts have an outcome.
    ///
    /// On a crowded queue outcomes become known late, those of short waits first, and many at once. So three rules are added.
    /// A bound of 80 or 95 % is no less than the simulated one, and no less than the ratio to the median of the draws that
    /// this share of earlier waits kept. Once each recent bound of 95 % was too low, it is the wait with requested runtimes.
    /// Outcomes of forecasts of about the same instant count once.
    pub(crate) fn live_bounds(&self, size: SizeClass, scale: &Scale) -> Option<[u64; LEVELS.len()]> {
        let enough = |outcomes: &&Outcomes| outcomes.kept.len() >= LEAST && outcomes.apart() >= LEAST_APART;
        let known = classes(size, scale).iter().find_map(|class| self.outcomes.get(class).filter(enough))?;
        let ranks = self.ranks.get(&size).copied().unwrap_or(AIMS);
        let [median, most, nearly_all] = quantiles(known.places(), ranks).map(|place| scale.wait(place));
        let ratios = known.kept.iter().map(|outcome| outcome.ratio);
        let [_, most_by_ratio, nearly_by_ratio] =
            quantiles(ratios, ranks).map(|ratio| scale.wait_of_ratio(ratio));
        let [_, most_simulated, nearly_simulated] = scale.simulated();
        let worst = if ranks[2] >= HIGHEST { scale.last() } else { 0 };
        let most = most.max(most_by_ratio).max(most_simulated).max(median);
        let nearly_all = nearly_all.max(nearly_by_ratio).max(nearly_simulated).max(worst).max(most);
        Some([median, most, nearly_all])
    }

    /// Returns the earlier waits in the narrowest class with enough of them.
    fn known(&self, size: SizeClass, scale: &Scale) -> Option<&Outcomes> {
        let outcomes = |class| self.outcomes.get(class).filter(|outcomes| outcomes.kept.len() >= LEAST);
        classes(size, scale).iter().find_map(outcomes)
    }

    /// Adds the outcome of a forecast: the wait of a job whose bounds were these. It was made at this second.
    pub(crate) fn add(
        &mut self,
        size: SizeClass,
        scale: &Scale,
        made: i64,
        bounds: [u64; LEVELS.len()],
        wait: u64,
    ) {
        for class in classes(size, scale) {
            self.outcomes.entry(class).or_default().add(scale, made, wait);
        }
        let ranks = self.ranks.entry(size).or_insert(AIMS);
        for ((rank, aim), bound) in ranks.iter_mut().zip(AIMS).zip(bounds) {
            let (up, down) = (STEP * aim / 1_000_000, STEP * (1_000_000 - aim) / 1_000_000);
            *rank = if wait > bound { (*rank + up).min(1_000_000) } else { rank.saturating_sub(down) };
        }
    }
}

/// Returns the values of these ranks, in millionths, by nearest rank.
fn quantiles(values: impl Iterator<Item = u64>, ranks: [u64; LEVELS.len()]) -> [u64; LEVELS.len()] {
    let mut sorted: Vec<u64> = values.collect();
    sorted.sort_unstable();
    ranks.map(|rank| {
        let place = (sorted.len() as u64 * rank).div_ceil(1_000_000).max(1) - 1;
        sorted[usize::try_from(place).unwrap_or(0).min(sorted.len() - 1)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_and_back() {
        let scale = Scale::new(&[100, 100, 2000, 50_000], 40_000);
        for wait in [0, 50, 100, 1000, 2000, 2001, 39_999, 40_000, 41_000, 400_000] {
            let back = scale.wait(scale.place(wait));
            assert!(back.abs_diff(wait) <= 1 + wait / 100, "{wait} {back}");
        }
        let none = Scale::new(&[], 0);
        assert_eq!(none.wait(none.place(0)), 0);
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
            let scale = Scale::new(&[requested / 8, requested / 4, requested / 3], requested);
            let bounds = calibration.bounds(size, &scale);
            calibration.add(size, &scale, 0, bounds, wait);
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
