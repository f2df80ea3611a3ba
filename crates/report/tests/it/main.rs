//! Small schedules, drawn: each rule of the policies as a picture that a reader can check. And how charts and pages look.

#![allow(clippy::unwrap_used)] // A helper of a test fails as the test does.

mod chart;

mod conservative;
mod easy;
mod eqspatial;
mod fcfs;
mod gang;
mod hosts;
mod immediate;
mod instants;
mod lsf;

mod miser;
mod orders;
mod overrun;
mod reservations;
mod suspension;
mod weights;

mod sample;

mod browser;
mod drawing;
mod page;
mod svg;
