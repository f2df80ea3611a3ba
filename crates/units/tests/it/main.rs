//! Tables of cases and properties of the grammar.

mod durations;
mod memory;
mod slurm;
