//! What results look like: text for people, JSON for programs, files for other tools.
//!
//! The floor above the simulator and the logs: it formats what they found and decides nothing.

mod run;

mod jobs;

mod workload;

mod gantt;

mod matrix;

pub mod chart;

pub mod page;

mod atomic;

mod numbers;

pub use atomic::{AtomicFile, remove_unfinished};
pub use gantt::gantt;
pub use jobs::{CsvJobs, SwfJobs};
pub use matrix::MatrixDoc;
pub use numbers::{count, figure, percent};
pub use run::{
    BatchSettings, BatchesDoc, Cdf, Cdfs, Details, Difference, EachBatch, EarlyDoc, FillingDoc, Group,
    GuaranteeRatio, Guarantees, HostsDoc, Jobs, MachineDoc, MeansDoc, Measure, MetricsDoc, Outcome,
    PerMeasure, PercentileDoc, PoolDoc, PoolsDoc, Promises, QueueLength, RowsDoc, Series, Settings,
    SlicedFigures, SlicingDoc, StepDoc, SuspendedDoc, Timing, TraceDoc, Uncertainty, compare_tables,
    differences, simulate_table,
};
pub use workload::{check_json, check_text, describe_json, describe_text, import_json, import_text};
