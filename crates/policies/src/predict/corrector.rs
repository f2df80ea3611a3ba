//! Correctors: the prediction of a job that outlived its prediction.

use miserly_core::{Prediction, Span};

/// The rule for the next prediction of a running job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Corrector {
    /// The estimate.
    #[default]
    Request,
    /// The first prediction, plus a step that grows with each correction, from 1 minute to 100
    /// hours. At most the estimate (Tsafrir, Etsion, Feitelson §4).
    Increment,
    /// Twice the time that the job has run. It may exceed the estimate.
    Double,
}

/// The steps of [`Corrector::Increment`], in minutes.
const STEPS: [i64; 11] = [1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000];

impl Corrector {
    /// Returns the next prediction after one that was too short. `first` is the first prediction.
    ///
    /// The result is longer than `present`, unless `present` is the estimate or longer.
    pub(super) fn correct(self, first: Span, present: Span, estimate: Span) -> Span {
        match self {
            Corrector::Request => estimate,
            Corrector::Increment => {
                let step = |minutes: &i64| first + Span::from_ticks(minutes * 60_000_000);
                let next = STEPS.iter().map(step).find(|next| *next > present);
                next.map_or(estimate, |next| next.min(estimate))
            }
            Corrector::Double => {
                let least = Span::from_ticks(1_000_000);
                let present = present.max(least);
                present + present
            }
        }
    }
}

/// Returns whether a correction can move the expected end: the job has not reached its estimate.
pub(super) fn may_correct(prediction: &Prediction, estimate: Span) -> bool {
    prediction.planned < estimate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(corrector: Corrector, [first, present, estimate]: [i64; 3], expect: i64) {
        let [first, present, estimate] =
            [first, present, estimate].map(|secs| Span::from_ticks(secs * 1_000_000));
        assert_eq!(corrector.correct(first, present, estimate), Span::from_ticks(expect * 1_000_000));
    }

    #[test]
    fn the_next_prediction() {
        check(Corrector::Request, [10, 10, 500], 500);
        check(Corrector::Increment, [10, 10, 500], 70);
        check(Corrector::Increment, [10, 70, 500], 310);
        check(Corrector::Increment, [10, 310, 500], 500);
        check(Corrector::Increment, [0, 360_000, 400_000], 400_000);
        check(Corrector::Double, [10, 10, 500], 20);
        check(Corrector::Double, [10, 320, 500], 640);
        check(Corrector::Double, [0, 0, 500], 2);
    }
}
