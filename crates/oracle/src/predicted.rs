//! Predicted runtimes in place of estimates.

use miserly_core::{Request, Span, Time};

use crate::NaiveJob;
use crate::world::World;

/// The source of the first prediction of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NaivePredictor {
    /// The estimate.
    Request,
    /// The mean of the last two runtimes of the user.
    LastTwo,
    /// The actual runtime.
    Exact,
    /// The estimate times this number.
    Scale(i64),
}

/// The rule for the prediction of a job that outlives its prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NaiveCorrector {
    /// The estimate.
    Request,
    /// The first prediction plus 1 min, 5 min, and so on.
    Increment,
    /// Twice the present prediction.
    Double,
}

/// Predicted runtimes around a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NaivePrediction {
    /// The first prediction.
    pub predictor: NaivePredictor,
    /// Later predictions.
    pub corrector: NaiveCorrector,
    /// Whether only orders use predictions.
    pub orders_only: bool,
}

/// What is known of the jobs: the runtimes of ended ones with their users, in the order of the ends.
#[derive(Default)]
pub(crate) struct Past(Vec<(Option<u32>, Span)>);

impl Past {
    pub(crate) fn add(&mut self, job: &NaiveJob, start: Time, now: Time) {
        self.0.push((job.request.user, now - start));
    }

    /// Returns the last two runtimes of a user, in whole seconds.
    fn last_two(&self, user: Option<u32>) -> Option<(i64, i64)> {
        user?;
        let mut of_user = self.0.iter().rev().filter(|(other, _)| *other == user);
        let mut next = || of_user.next().map(|(_, runtime)| runtime.ticks() / 1_000_000);
        next().zip(next())
    }
}

impl NaivePrediction {
    /// Returns the runtime that is predicted for a submitted job.
    fn first(&self, job: &NaiveJob, past: &Past) -> Span {
        let Request { estimate, user, .. } = job.request;
        match self.predictor {
            NaivePredictor::Request => estimate,
            NaivePredictor::Exact => job.runtime.0,
            NaivePredictor::Scale(times) => Span::from_ticks(estimate.ticks() * times),
            NaivePredictor::LastTwo => past.last_two(user).map_or(estimate, |(last, before)| {
                estimate.min(Span::from_ticks(i64::midpoint(last, before) * 1_000_000))
            }),
        }
    }

    /// Predicts the runtime of a submitted job. Plans and orders read it in place of the estimate.
    pub(crate) fn predict(&self, world: &mut World<'_>, past: &Past, position: usize) {
        let job = &world.requested[position];
        let least = job.request.estimate.min(Span::from_ticks(1_000_000));
        let predicted = self.first(job, past).max(least);
        world.ranked[position].request.estimate = predicted;
        if !self.orders_only {
            world.jobs[position].request.estimate = predicted;
        }
    }

    /// Predicts again the runtime of a running job that outlived its prediction.
    pub(crate) fn correct(&self, world: &mut World<'_>, position: usize) {
        let estimate = world.requested[position].request.estimate;
        let first = world.ranked[position].request.estimate;
        let present = world.jobs[position].request.estimate;
        if present >= estimate {
            return;
        }
        let minute = 60_000_000;
        let next = match self.corrector {
            NaiveCorrector::Request => estimate,
            NaiveCorrector::Double => Span::from_ticks(2 * present.ticks().max(1_000_000)),
            NaiveCorrector::Increment => [1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000]
                .map(|minutes| Span::from_ticks(first.ticks() + minutes * minute))
                .into_iter()
                .find(|next| *next > present)
                .unwrap_or(estimate)
                .min(estimate),
        };
        world.jobs[position].request.estimate = next;
        for running in &mut world.running {
            if running.position == position {
                let start = world.starts[position].expect("it runs");
                running.expected = (start + next).max(world.now + Span::TICK);
                running.noticed = false;
            }
        }
    }
}
