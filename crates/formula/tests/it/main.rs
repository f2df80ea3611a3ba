//! The language as seen by users, compared with a simple evaluator.

#![allow(clippy::unwrap_used)] // A helper of a test fails as the test does.

mod errors;
mod language;
mod naive;
mod presets;
mod properties;
