//! Predicted runtimes in place of estimates (Tsafrir, Etsion, Feitelson 2007; Gaussier et al. 2015).
//!
//! [`Predictive`] runs around any policy of the backfill family. It sets the prediction of each job
//! in the ledger, and the inner policy plans by it. A job is killed at its estimate, whatever its
//! prediction is.
//!
//! | part | question |
//! |---|---|
//! | [`Predictor`] | how long will a job run, as of its submission? |
//! | [`Corrector`] | how long will it run, now that it has outlived its prediction? |
//! | [`Book`] | where do plans use the prediction, and where the estimate? |

mod rules;

mod predictor;

mod corrector;

mod history;

mod similar;

mod policy;

mod params;

pub use self::corrector::Corrector;
pub use self::policy::Predictive;
pub use self::predictor::Predictor;
pub use self::rules::{Book, Lengths, Passes, PredictionRules};

pub(crate) use self::params::read;
pub(crate) use self::policy::OtherLengths;
