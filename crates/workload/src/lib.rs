//! Job logs: the Standard Workload Format in and out, and the jobs that a run makes of it.
//!
//! ```
//! use miserly_workload::{Jobs, JobOptions, Trace};
//!
//! let log = "; MaxProcs: 10\n1 100 -1 60 6 -1 -1 6 90 -1 1 1 -1 -1 -1 -1 -1 -1\n";
//! let trace = Trace::memory("example", log.into());
//! let survey = trace.survey()?;
//! let procs = survey.header.procs().unwrap();
//! let options = JobOptions { procs, ..JobOptions::default() };
//! let jobs: Vec<_> = Jobs::new(&trace, survey.in_order, options)?.collect::<Result<_, _>>()?;
//! assert_eq!(jobs[0].request.estimate.secs(), 90);
//! assert_eq!(jobs[0].runtime.0.secs(), 60);
//! # Ok::<(), miserly_workload::TraceError>(())
//! ```

pub mod swf;

mod packed;

mod trace;

mod filter;

mod estimates;

mod jobs;

mod local_time;

pub mod describe;

pub mod check;

pub mod o2k;

pub mod generate;

mod interactive;

pub use check::{CheckReport, check};
pub use describe::{Description, describe};
pub use estimates::{Estimates, EstimatesError, Factor};
pub use filter::{Filter, FilterError};
pub use interactive::{Interactive, InteractiveError};
pub use jobs::{Arrivals, Counts, Job, JobOptions, Jobs, Overrun, ProcsField};
pub use packed::Packing;
pub use trace::{Survey, Trace, TraceError};
