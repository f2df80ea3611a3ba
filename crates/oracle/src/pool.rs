//! Windows of Miser in a pool that varies over time, by looking at every tick; with an event loop of its own.

mod world;

use miserly_core::{EventOrder, Refusal, Resources, Span, Time};

use crate::NaiveJob;

use self::world::World;

/// A pool, and all that happens to it. Times are few ticks: every one of them is looked at.
#[derive(Clone, Debug)]
pub struct NaivePool {
    /// From when in each period how much there is; the first is at its beginning, which is time 0.
    pub steps: Vec<(i64, Resources)>,
    /// How long a period is.
    pub period: i64,
    /// How far ahead a window may end; for ever, if there is no such time.
    pub horizon: Option<i64>,
    /// The jobs.
    pub jobs: Vec<NaiveJob>,
    /// What is changed from outside, and when.
    pub changes: Vec<(Time, NaiveChange)>,
}

/// Something that is changed from outside. What is about a job is nothing, unless the job is there just before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NaiveChange {
    /// A waiting job, by position, is taken back.
    Withdraw(usize),
    /// A waiting job has another earliest start.
    Begin(usize, Option<Time>),
    /// A job that waits or runs has another estimate.
    Estimate(usize, Span),
    /// There is no more than this.
    Capacity(Resources),
}

/// What became of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NaiveFate {
    /// When it started, if it did.
    pub start: Option<Time>,
    /// Why it was sent away, if it was.
    pub refused: Option<Refusal>,
    /// Each latest start that it was told: when, which, and whether it is later than the one before.
    pub told: Vec<(Time, Time, bool)>,
}

/// What becomes of each job, by position.
pub fn windows(pool: &NaivePool, instants: EventOrder) -> Vec<NaiveFate> {
    World::new(pool).run(instants)
}

impl NaivePool {
    /// How much there is then, if no more than `capacity` is left.
    fn there_is(&self, at: i64, capacity: &Resources) -> Resources {
        let offset = at.rem_euclid(self.period);
        let step = self.steps.iter().rev().find(|(from, _)| *from <= offset).expect("one from the beginning");
        step.1.least(capacity)
    }

    /// The most that there ever is of each kind.
    fn most(&self) -> Resources {
        self.steps.iter().fold(Resources::NONE, |most, (_, amount)| most.most(amount))
    }
}
