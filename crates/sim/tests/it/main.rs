//! The floors below the command line, together: policies under the driver in virtual time.

#![allow(clippy::unwrap_used)] // A helper of a test fails as the test does.

mod against_oracle;
mod batches;
mod devices;
mod eqspatial;
mod event_queue;
mod family;
mod feedback;
mod formulas;
mod gang;
mod hosts;
mod invariants;
mod litmus;
mod lsf;
mod pools;
mod rebuild;
mod scripted;
mod shadow;
mod slurm_nodes;
mod story;
mod support;
mod suspension;
mod usage;
