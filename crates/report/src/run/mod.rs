//! The results of a run: one document for programs, tables for people.

mod document;

mod tables;

pub use document::{
    Jobs, Measure, MetricsDoc, Outcome, PercentileDoc, Promises, QueueLength, Settings, Timing, TraceDoc,
};
pub use tables::{compare_tables, simulate_table};
