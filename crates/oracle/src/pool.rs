//! Windows of Miser in a pool that varies over time, found by checking every tick, with a separate
//! event loop.

mod world;

use miserly_core::{EventOrder, Refusal, Resources, Span, Time};

use crate::NaiveJob;

use self::world::World;

/// A pool and its events. Times must be small numbers of ticks, because every tick is checked.
#[derive(Clone, Debug)]
pub struct NaivePool {
    /// The amounts and their offsets in each period. The first offset is time 0.
    pub steps: Vec<(i64, Resources)>,
    /// The length of a period.
    pub period: i64,
    /// Other amounts, each from a time until before another one, once. They do not overlap.
    pub once: Vec<(i64, i64, Resources)>,
    /// The horizon for the end of a window, or `None` for no limit.
    pub horizon: Option<i64>,
    /// The jobs.
    pub jobs: Vec<NaiveJob>,
    /// The changes from outside, and their instants.
    pub changes: Vec<(Time, NaiveChange)>,
}

/// A change from outside. A change of a job has no effect, unless the job is in the system just
/// before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NaiveChange {
    /// A waiting job, by position, is withdrawn.
    Withdraw(usize),
    /// A waiting job gets another earliest start.
    Begin(usize, Option<Time>),
    /// A waiting or running job gets another estimate.
    Estimate(usize, Span),
    /// A waiting job requests other resources and another time, and loses its window.
    Request(usize, Resources, Span),
    /// The capacity becomes this amount.
    Capacity(Resources),
}

/// The outcome of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NaiveFate {
    /// The start, if any.
    pub start: Option<Time>,
    /// The reason for its refusal, if it was refused.
    pub refused: Option<Refusal>,
    /// Each promise to the job: its instant, its latest start, and whether it is later than the one
    /// before.
    pub promises: Vec<(Time, Time, bool)>,
}

/// Returns the outcome of each job, by position.
pub fn windows(pool: &NaivePool, event_order: EventOrder) -> Vec<NaiveFate> {
    World::new(pool).run(event_order)
}

impl NaivePool {
    /// Returns the amount at that tick, limited by `capacity`.
    fn capacity_at(&self, at: i64, capacity: &Resources) -> Resources {
        if let Some((_, _, amount)) = self.once.iter().find(|(from, to, _)| (*from..*to).contains(&at)) {
            return amount.least(capacity);
        }
        let offset = at.rem_euclid(self.period);
        let step = self.steps.iter().rev().find(|(from, _)| *from <= offset).expect("one from the beginning");
        step.1.least(capacity)
    }

    /// Returns the maximum of each kind over all time.
    fn most(&self) -> Resources {
        let once = self.once.iter().map(|(_, _, amount)| amount);
        let all = self.steps.iter().map(|(_, amount)| amount).chain(once);
        all.fold(Resources::NONE, |most, amount| most.most(amount))
    }

    /// Returns the time from which on every period is the same.
    fn regular_from(&self) -> i64 {
        self.once.iter().map(|(_, to, _)| *to).max().unwrap_or(i64::MIN)
    }
}
