//! The language as a user meets it, and against an evaluator that is obviously right.

#![allow(clippy::unwrap_used)] // A helper of a test fails as the test does.

mod errors;
mod language;
mod naive;
mod presets;
mod properties;
