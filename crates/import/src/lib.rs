//! Conversion of foreign job logs to the Standard Workload Format: the accounting of batch systems, and Batsim
//! workloads.
//!
//! [`Format::of`] recognises the format of a log, and [`import`] returns a log and a report. The report lists the jobs
//! left out and the properties that the format cannot represent. `docs/import.md` documents the mapping with
//! reasons.
//!
//! ```
//! use miserly_import::{Format, ImportOptions, import};
//! use miserly_workload::Trace;
//! use miserly_workload::swf::Field;
//!
//! let accounting = "JobIDRaw|Submit|Start|End|AllocCPUS|State\n\
//!                   77|1709280000|1709280060|1709280360|4|COMPLETED\n\
//!                   78|1709280030|Unknown|Unknown|4|PENDING\n";
//! let trace = Trace::memory("march", accounting.into());
//! assert_eq!(Format::of(&trace)?, Format::Slurm);
//! let log = import(&trace, Format::Slurm, &ImportOptions::default())?;
//! assert_eq!((log.report.read, log.report.written), (2, 1));
//! assert_eq!(log.records[0].get(Field::Runtime), 300);
//! # Ok::<(), miserly_import::ImportError>(())
//! ```

mod format;

mod header;

mod options;

mod formats;

mod row;

mod accounting;

mod job;

mod state;

mod values;

mod log;

mod number_map;

mod remark;

mod table;

mod error;

#[cfg(test)]
mod tests;

pub use jiff::tz::TimeZone;

pub use error::{CellError, FieldError, ImportError};
pub use format::{Conversion, Format};
pub use formats::{batsim, columns, command, converted, import, imported, slurm};
pub use log::{Imported, ImportedLog, Report, RuleCount, UnknownState, UnknownStatesReport};
pub use options::{ImportOptions, SubmitAt, find_time_zone};
pub use remark::{Remark, RemarkCount, RemarkEffect, Remarks};
pub use table::{
    Cell, ColumnFacts, ColumnMap, FieldKind, FilesError, Frame, MapError, PRESETS, Per, Preset, Preview,
    Proposal, SameJob, TableField, TableFormat, Unit, find_preset, frame, is_pattern, open_log, preview,
    propose, table_files,
};
