//! The parts of the daemon around the engine, each through its public interface.

#![allow(clippy::unwrap_used)] // A helper of a test fails as the test does.

mod store;
