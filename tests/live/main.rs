//! The daemon as it runs: the program itself, real processes, real signals and the real clock.
//!
//! `MISERLY_ROUNDS` says how many rounds the tests take that kill things at random (20 where it is not set).

#![cfg(target_os = "linux")]

mod support;

mod same;

mod kills;

mod real;

mod damage;

mod again;

mod crowd;

mod requests;

mod steps;

mod early;

mod policies;

mod gang;

mod reload;

mod readme;
