//! Tests of the daemon with real processes, signals and clocks.
//!
//! `MISERLY_ROUNDS` is the number of rounds of the tests with random kills (default: 20).

#![cfg(target_os = "linux")]

mod support;

mod same;

mod kills;

mod crash_points;

mod campaign;

mod real;

mod damage;

mod again;

mod shims;

mod crowd;

mod requests;

mod rights;

mod steps;

mod early;

mod policies;

mod gang;

mod reload;

mod sessions;
