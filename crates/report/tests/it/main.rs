//! Drawn schedules of a few jobs, which show each rule of the policies, and the appearance of
//! charts and pages.

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
mod selective_reservations;
mod suspension;
mod weights;

mod sample;

mod browser;
mod drawing;
mod page;
mod svg;
