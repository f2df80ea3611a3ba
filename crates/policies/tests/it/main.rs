//! The shared structures against obvious slow versions.

#![allow(clippy::unwrap_used)] // A helper of a test fails as the test does.

mod order;
mod predictions;

mod changing;
mod profile;
mod queue;
mod shares;
