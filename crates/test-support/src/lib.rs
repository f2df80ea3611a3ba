//! Helpers that the tests of several crates share.
//!
//! A test that needs a privilege, a tool or real logs asks [`Requirement::is_met`] first. Where the
//! requirement is missing, the test reports a skip, or fails if the requirement's switch is set.
//! `.ci/run` sets the switch of each requirement that the machine meets.

#[cfg(feature = "browser")]
pub mod browser;
mod draws;
mod requirement;
mod traces;

pub use draws::Draws;
pub use requirement::Requirement;
pub use traces::Traces;
