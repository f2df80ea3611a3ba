//! Tests of the daemon with real processes, signals and clocks.
//!
//! `MISERLY_ROUNDS` is the number of rounds of the tests with random kills (default: 4), and `MISERLY_JOBS` that of the jobs
//! in the test with many jobs (default: 60).

#![cfg(target_os = "linux")]

mod support;

mod same;

mod kills;

mod crash_points;

mod campaign;

mod faults;

mod real;

mod damage;

mod unrecorded;

mod starts;

mod blocked;

mod shadow;

mod resize;

mod shims;

mod crowd;

mod many;

mod flood;

mod requests;

mod changes;

mod reservations;

mod top;

mod rights;

mod users;

mod steps;

mod early;

mod pipelines;

mod forecasts;

mod events;

mod hook;

mod usage;

mod policies;

mod gang;

mod reboots;

mod reload;

mod questions;

mod queue_programs;

mod written_out;

mod idle;

mod soft_limits;

mod sessions;

mod interactive;

mod slurm_names;

mod measured;

mod laptop;

mod read_aloud;

mod ui;
mod ui_job;
mod ui_lists;
mod ui_picture;
