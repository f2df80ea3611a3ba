//! Conversion of foreign job logs to the Standard Workload Format: Slurm accounting and Batsim
//! workloads.
//!
//! Each importer returns a log and a report. The report lists the jobs left out and the properties
//! that the format cannot represent. `docs/import.md` documents the mapping with reasons.
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

mod form;

mod slurm;

mod batsim;

mod log;

mod number_map;

mod remark;

mod error;

pub use batsim::{BatsimOptions, batsim};
pub use jiff::tz::TimeZone;

pub use error::{FieldError, ImportError};
pub use form::{Conversion, Form};
pub use log::{ImportedLog, Report};
pub use remark::{Remark, RemarkCount, RemarkEffect, Remarks};
pub use slurm::{SlurmOptions, SubmitAt, columns, command, slurm};
