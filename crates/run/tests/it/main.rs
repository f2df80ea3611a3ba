//! The examples of this crate.

mod examples;
