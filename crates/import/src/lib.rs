//! Other people's job logs as the Standard Workload Format: Slurm's accounting and Batsim's workloads.
//!
//! Whoever wants to try a policy on last month's jobs has one of these. Each importer makes a log of it, and a report of
//! what was left out and of what the format has no place for. What maps to what, and why: `docs/import.md`.
//!
//! ```
//! use miserly_import::{SlurmOptions, slurm};
//! use miserly_workload::Trace;
//! use miserly_workload::swf::Field;
//!
//! let accounting = "JobIDRaw|Submit|Start|End|AllocCPUS|State\n\
//!                   77|1709280000|1709280060|1709280360|4|COMPLETED\n\
//!                   78|1709280030|Unknown|Unknown|4|PENDING\n";
//! let log = slurm(&Trace::memory("march", accounting.into()), &SlurmOptions::default())?;
//! assert_eq!((log.report.read, log.report.written), (2, 1));
//! assert_eq!(log.records[0].get(Field::Runtime), 300);
//! # Ok::<(), miserly_import::ImportError>(())
//! ```

mod slurm;

mod batsim;

mod log;

mod numbering;

mod remark;

mod error;

pub use batsim::{BatsimOptions, batsim};
pub use jiff::tz::TimeZone;

pub use error::{FieldError, ImportError};
pub use log::{Imported, Report};
pub use remark::{Remark, Remarks, Sort, Tally};
pub use slurm::{SlurmOptions, SubmitAt, command, slurm};
