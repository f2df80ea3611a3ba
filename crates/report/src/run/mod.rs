//! The results of a run: one document for programs, tables for people.

mod details;

mod document;

mod tables;

pub use details::{
    Cdf, Cdfs, Details, Difference, Group, GuaranteeRatio, Guarantees, PerMeasure, Series, Uncertainty,
    differences,
};
pub use document::{
    Jobs, Measure, MetricsDoc, Outcome, PercentileDoc, Promises, QueueLength, Settings, Timing, TraceDoc,
};
pub use tables::{compare_tables, simulate_table};
