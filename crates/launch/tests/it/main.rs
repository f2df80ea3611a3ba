//! Attempts of jobs as real processes: everything that a daemon may rely on.

#![allow(clippy::unwrap_used)] // A helper of a test fails as the test does.

mod ends;
mod support;
