//! The daemon's parts, each through its public face.

#![allow(clippy::unwrap_used)] // A helper of a test fails as the test does.

mod engine;

mod idle;

mod clock;

mod pools;

mod store;

mod pruning;
