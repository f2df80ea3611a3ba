//! Policies that take jobs off their processors before they end.

mod immediate;

mod victims;

pub use immediate::{Immediate, Service};
