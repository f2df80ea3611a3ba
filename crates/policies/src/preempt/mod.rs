//! Policies that take jobs off their processors before they end.

mod immediate;

mod selective;

mod victims;

pub use immediate::{Immediate, Service};
pub use selective::{Criterion, Limits, Moving, Place, Selective, Slices, Suspension, Transfer};
