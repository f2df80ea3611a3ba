//! The laboratory: logs run under policies.
//!
//! [`Prepared`] is a log made ready to be run under any policy.

pub mod experiment;

mod prepared;

mod stopwatch;

pub use prepared::{PrepareError, Prepared, RunOptions};
pub use stopwatch::Stopwatch;
