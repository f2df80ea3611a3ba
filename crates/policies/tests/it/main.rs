//! The shared structures against obvious slow versions.

mod profile;
mod queue;
