//! Attempts as real processes: the guarantees on which a daemon relies.

#![allow(clippy::unwrap_used)] // A helper of a test fails as the test does.

mod at_most_once;
mod blocked;
mod classes;
mod disk;
mod ends;
mod found;
mod inherits;
mod interactive;
mod opportunistic;
mod priority;
mod protocol;
mod queue_programs;
mod shutdown;
mod stops;

mod support;
mod turns;
mod users;
mod window;
