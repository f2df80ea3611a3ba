//! The rules of predictions, as data.

use miserly_core::Span;

use super::{Corrector, Predictor};

/// Where predictions take the place of estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Book {
    /// In orders and plans. Nothing is promised, because a prediction may be too short.
    #[default]
    Predicted,
    /// In orders only. Plans use estimates, and promises are kept.
    Requested,
    /// In orders, and in plans for running jobs. A waiting job has to fit by its estimate. Nothing is
    /// promised (Tsafrir, Etsion, Feitelson §5.2).
    Both,
    /// In orders, and in plans for waiting jobs, by their [optimistic](Lengths::optimistic) length or
    /// the estimate, whichever is shorter.
    /// Running jobs are planned by their estimates. A guard limits the delay of the head of the queue.
    /// Nothing is promised.
    Guarded,
}

impl Book {
    /// Returns the span for which a plan holds the resources of a waiting job.
    pub(super) fn while_waiting(self, lengths: Lengths, estimate: Span) -> Span {
        match self {
            Book::Predicted => lengths.likely,
            Book::Requested | Book::Both => estimate,
            Book::Guarded => lengths.optimistic.min(estimate),
        }
    }

    /// Returns the span for which a plan holds the resources of a job that starts, if it differs.
    pub(super) fn while_running(self, likely: Span, estimate: Span) -> Option<Span> {
        match self {
            Book::Predicted | Book::Requested => None,
            Book::Both => Some(likely),
            Book::Guarded => Some(estimate),
        }
    }
}

/// The predicted lengths of a job. None exceeds its estimate, unless a factor multiplies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// The runtime by which orders rank the job.
    pub likely: Span,
    /// A short runtime: most similar jobs exceed it.
    pub optimistic: Span,
    /// A long runtime: few similar jobs exceed it.
    pub cautious: Span,
}

impl Lengths {
    /// Returns the lengths of a predictor that knows one length only.
    pub(super) fn one(length: Span) -> Lengths {
        Lengths { likely: length, optimistic: length, cautious: length }
    }

    /// Returns the lengths, each with this least value.
    pub(super) fn at_least(self, least: Span) -> Lengths {
        self.map(|length| length.max(least))
    }

    /// Returns the lengths, each with this largest value.
    pub(super) fn at_most(self, most: Span) -> Lengths {
        self.map(|length| length.min(most))
    }

    fn map(self, change: impl Fn(Span) -> Span) -> Lengths {
        let Lengths { likely, optimistic, cautious } = self;
        let [likely, optimistic, cautious] = [likely, optimistic, cautious].map(change);
        Lengths { likely, optimistic, cautious }
    }
}

/// The rounds in which the inner policy has a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Passes {
    /// Every round.
    #[default]
    Every,
    /// The rounds of the published simulations (Gaussier et al. 2015): none after a correction
    /// alone. With `fitting`, none after a submission whose job does not fit on the free processors.
    Published {
        /// Whether a submission needs a job that fits.
        fitting: bool,
    },
}

impl PredictionRules {
    /// Returns the rules that decide predictions, as numbers.
    pub(super) fn words(&self) -> Vec<u64> {
        let predictor = match self.predictor {
            Predictor::Request => [0, 0],
            Predictor::LastTwo => [1, 0],
            Predictor::Similar => [2, 0],
            Predictor::Exact => [3, 0],
            Predictor::Scale(thousandths) => [4, thousandths],
        };
        let book = match self.book {
            Book::Predicted => 0,
            Book::Requested => 1,
            Book::Both => 2,
            Book::Guarded => 3,
        };
        vec![predictor[0], predictor[1], book]
    }

    /// Returns whether a plan may hold resources for longer than the estimate allows.
    pub(crate) fn plans_beyond_limits(&self) -> bool {
        let longer = matches!(self.predictor, Predictor::Scale(thousandths) if thousandths > 1000);
        match self.book {
            Book::Predicted | Book::Both => longer || self.corrector == Corrector::Double,
            Book::Requested | Book::Guarded => false,
        }
    }
}

/// The rules by which a policy predicts runtimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredictionRules {
    /// The prediction of a submitted job.
    pub predictor: Predictor,
    /// The prediction of a job that outlived its prediction.
    pub corrector: Corrector,
    /// Where predictions are used.
    pub book: Book,
    /// The rounds with a pass.
    pub passes: Passes,
}
