//! The experiments of Roussos et al. (Miser, 1999), section 5, on real processes of the machine at hand.
//!
//! [`measure()`] starts a daemon of its own in a temporary folder, runs the kernels of [`miserly_kernels`] with and without it, and
//! returns the [`Page`](miserly_report::page::Page) of the figures. [`run_program`] is the program of the jobs.
//! [`clean_up`] ends all processes that an interrupted measurement started.
//!
//! Timings differ from run to run. What must not differ are the [mechanisms](Measured::failures): the results of the kernels,
//! and that each job ran in its window. Nothing here adapts to the figures of the paper.
#![cfg(target_os = "linux")]

mod options;

mod plan;

mod program;

mod processes;

mod daemon;

mod disturbance;

mod bench;

mod checks;

mod load;

mod interactive;

mod throughput;

mod latency;

mod pools;

mod simulated;

mod statistics;

mod present;

mod measure;

mod error;

mod guard;

pub use error::MeasureError;
pub use guard::guard;
pub use measure::{Measured, measure};
pub use options::{NAME, Options, PARTS, TITLE};
pub use processes::clean_up;
pub use program::{Program, ProgramTask, Record, run_program};
