//! The results of a run: one document for programs, tables for people.

mod details;

mod document;

mod machine;

mod groups;

mod slicing;

mod tables;

mod group_tables;

mod layout;

pub use details::{
    Cdf, Cdfs, Details, Difference, GuaranteeRatio, Guarantees, PerMeasure, Series, Uncertainty, differences,
};
pub use document::{
    EarlyDoc, FillingDoc, Jobs, Measure, MetricsDoc, Outcome, PercentileDoc, Promises, QueueLength, Settings,
    SuspendedDoc, Timing, TraceDoc,
};
pub use groups::Group;
pub use machine::{HostsDoc, MachineDoc, PoolDoc, PoolsDoc, StepDoc};
pub use slicing::{BatchSettings, BatchesDoc, EachBatch, MeansDoc, RowsDoc, SlicedFigures, SlicingDoc};
pub use tables::{compare_tables, simulate_table};
