//! The rules of predictions, as data.

use super::{Corrector, Predictor};

/// Where predictions take the place of estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Book {
    /// In orders and plans. Nothing is promised, because a prediction may be too short.
    #[default]
    Predicted,
    /// In orders only. Plans use estimates, and promises are kept.
    Requested,
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
    /// Returns whether a plan may hold resources for longer than the estimate allows.
    pub(crate) fn plans_beyond_limits(&self) -> bool {
        let longer = matches!(self.predictor, Predictor::Scale(thousandths) if thousandths > 1000);
        self.book == Book::Predicted && (longer || self.corrector == Corrector::Double)
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
