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
    /// Lengths from the last runtimes of similar jobs of the user.
    Similar,
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
    /// Where predictions are used.
    pub book: NaiveBook,
}

/// Where predictions are used, beside orders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NaiveBook {
    /// In all plans.
    Predicted,
    /// In no plan.
    Requested,
    /// In plans for running jobs.
    Both,
    /// In plans for waiting jobs, with a guard of the head.
    Guarded,
}

/// What is known of the jobs: the ended ones with their runtimes, in the order of the ends.
#[derive(Default)]
pub(crate) struct Past(Vec<(Request, Span)>);

/// The lengths of a job: the likely, the optimistic and the cautious one.
struct Lengths([Span; 3]);

impl Past {
    pub(crate) fn add(&mut self, job: &NaiveJob, start: Time, now: Time) {
        self.0.push((job.request.clone(), now - start));
    }

    /// Returns the last two runtimes of a user, in whole seconds.
    fn last_two(&self, user: Option<u32>) -> Option<(i64, i64)> {
        user?;
        let mut of_user = self.0.iter().rev().filter(|(other, _)| other.user == user);
        let mut next = || of_user.next().map(|(_, runtime)| runtime.ticks() / 1_000_000);
        next().zip(next())
    }

    /// Returns the lengths by the newest ten runtimes, in whole seconds, of the narrowest class of
    /// jobs with two or more among the last forty of the user.
    fn similar(&self, request: &Request) -> Lengths {
        let secs = |span: Span| span.ticks() / 1_000_000;
        let of_user = self.0.iter().rev().filter(|(other, _)| other.user == request.user);
        let forty: Vec<_> = of_user.take(40).filter(|_| request.user.is_some()).collect();
        let likeness = |other: &Request| {
            let estimate = secs(other.estimate) == secs(request.estimate);
            [estimate && other.procs() == request.procs(), estimate, true]
        };
        let class = |nth: usize| {
            let like = forty.iter().filter(|(other, _)| likeness(other)[nth]).take(10);
            like.map(|(_, runtime)| secs(*runtime).min(secs(request.estimate))).collect::<Vec<_>>()
        };
        let Some(mut sample) = (0..3).map(class).find(|sample| sample.len() >= 2) else {
            return Lengths([request.estimate; 3]);
        };
        sample.sort_unstable();
        let at = |share: f64| {
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let rank = (share * sample.len() as f64 - 1e-9).ceil() as usize;
            sample[rank - 1]
        };
        // The mean, squared, is the sum over the sum of the inverses.
        let runtimes = || sample.iter().map(|runtime| i128::from(*runtime).max(10));
        let (sum, inverse): (i128, i128) =
            (runtimes().sum(), runtimes().map(|runtime| (1 << 64) / runtime).sum());
        let square = sum * (1 << 64) / inverse;
        let mean = (0..i64::MAX).find(|mean| i128::from(mean + 1).pow(2) > square).expect("it is small");
        let span = |secs: i64| Span::from_ticks(secs * 1_000_000).min(request.estimate);
        Lengths([span(mean), span(at(0.25)), span(at(0.9))])
    }
}

impl NaivePrediction {
    /// Returns the lengths that are predicted for a submitted job.
    fn first(&self, job: &NaiveJob, past: &Past) -> Lengths {
        let Request { estimate, user, .. } = job.request;
        let length = match self.predictor {
            NaivePredictor::Similar => return past.similar(&job.request),
            NaivePredictor::Request => estimate,
            NaivePredictor::Exact => job.runtime.0,
            NaivePredictor::Scale(times) => Span::from_ticks(estimate.ticks() * times),
            NaivePredictor::LastTwo => past.last_two(user).map_or(estimate, |(last, before)| {
                estimate.min(Span::from_ticks(i64::midpoint(last, before) * 1_000_000))
            }),
        };
        Lengths([length; 3])
    }

    /// Predicts the runtime of a submitted job. Plans and orders read it in place of the estimate.
    pub(crate) fn predict(&self, world: &mut World<'_>, past: &Past, position: usize) {
        let job = &world.requested[position];
        let estimate = job.request.estimate;
        let least = estimate.min(Span::from_ticks(1_000_000));
        let Lengths(lengths) = self.first(job, past);
        let [likely, optimistic, cautious] = lengths.map(|length| length.max(least));
        world.ranked[position].request.estimate = likely;
        world.jobs[position].request.estimate = match self.book {
            NaiveBook::Predicted => likely,
            NaiveBook::Requested | NaiveBook::Both => estimate,
            NaiveBook::Guarded => optimistic.min(estimate),
        };
        if self.book == NaiveBook::Guarded {
            world.guards[position].cautious = Some(cautious);
        }
    }

    /// Plans the jobs that started in a pass by the span of running jobs. Returns the changes of their
    /// expected ends.
    pub(crate) fn plan_started(&self, world: &mut World<'_>, started: &[usize]) -> Vec<Span> {
        let mut changes = Vec::new();
        for &position in started {
            let planned = match self.book {
                NaiveBook::Predicted | NaiveBook::Requested => continue,
                NaiveBook::Both => world.ranked[position].request.estimate,
                NaiveBook::Guarded => world.requested[position].request.estimate,
            };
            if planned != world.jobs[position].request.estimate {
                changes.push(planned - world.jobs[position].request.estimate);
                expect(world, position, planned);
            }
        }
        changes
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
        expect(world, position, next);
    }
}

/// Plans a running job by this span.
fn expect(world: &mut World<'_>, position: usize, planned: Span) {
    world.jobs[position].request.estimate = planned;
    for running in &mut world.running {
        if running.position == position {
            let start = world.starts[position].expect("it runs");
            running.expected = (start + planned).max(world.now + Span::TICK);
            running.noticed = false;
        }
    }
}
