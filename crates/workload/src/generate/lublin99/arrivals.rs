//! Arrivals with a daily cycle.

use super::LublinParameters;
use crate::generate::drand48::{Drand48, Gamma};

/// Half hours in a day.
const BUCKETS: usize = 48;

const SECONDS: f64 = 1800.0;

/// The gamma distribution of arrivals begins at this half hour of the day, and ends a day later.
const DAY_BEGINS: usize = 11;

/// The logarithm that no time between rush hours' jobs exceeds: five days.
const LONGEST: f64 = 13.0;

/// The arrivals of a type of jobs.
///
/// A time between jobs in rush hours is worth points. A half hour costs its share of the arrivals,
/// relative to the mean of all half hours. So a point lasts longer in hours with few arrivals.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    gap: Gamma,
    costs: [f64; BUCKETS],
    bucket: usize,
    points: f64,
    /// The spent part of the half hour.
    part: f64,
    time: u64,
}

impl Arrivals {
    /// Creates the arrivals from midnight on.
    pub(super) fn new(parameters: &LublinParameters) -> Arrivals {
        let LublinParameters { gap_shape, gap_scale, rush_ratio, day_shape, day_scale, .. } = *parameters;
        let day = Gamma { shape: day_shape, scale: day_scale };
        let mut costs = [0.0; BUCKETS];
        for place in DAY_BEGINS..DAY_BEGINS + BUCKETS {
            let at = place as f64;
            costs[(place - 1) % BUCKETS] = day.cumulated(at + 0.5) - day.cumulated(at - 0.5);
        }
        let mean = costs.iter().sum::<f64>() / BUCKETS as f64;
        let costs = costs.map(|cost| cost / mean);
        let gap = Gamma { shape: gap_shape * rush_ratio, scale: gap_scale };
        Arrivals { gap, costs, bucket: 0, points: 0.0, part: 0.0, time: 0 }
    }

    /// Returns the next arrival in seconds.
    pub(super) fn time(&self) -> u64 {
        self.time
    }

    /// Draws the arrival after the next one. Each is cut to whole seconds, as in the program.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a sum of gaps, none negative"
    )]
    pub(super) fn advance(&mut self, stream: &mut Drand48) {
        let gap = loop {
            let drawn = stream.gamma(self.gap);
            if drawn <= LONGEST {
                break drawn;
            }
        };
        self.points += gap.exp() / SECONDS;
        let mut passed = 0.0;
        while self.points > self.costs[self.bucket] {
            self.points -= self.costs[self.bucket];
            self.bucket = (self.bucket + 1) % BUCKETS;
            passed += SECONDS;
        }
        let part = self.points / self.costs[self.bucket];
        passed += SECONDS * (part - self.part);
        self.part = part;
        self.time = (self.time as f64 + passed) as u64;
    }
}
