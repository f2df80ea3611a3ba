//! Policies that suspend or requeue jobs before they end.

mod immediate;

mod policy;

mod selective;

mod victims;

pub use immediate::{Immediate, Service};
pub use policy::IMMEDIATE;
pub use selective::{
    Criterion, IS, Limits, Moving, PeChoice, SS, Selective, Slices, Suspension, TSS, Transfer,
};
