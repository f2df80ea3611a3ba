//! Attempts of jobs as real processes: everything that a daemon may rely on.

#![allow(clippy::unwrap_used)] // A helper of a test fails as the test does.

mod ahead;
mod at_most_once;
mod classes;
mod disk;
mod ends;
mod found;
mod inherits;
mod stops;

mod support;
mod turns;
mod window;
