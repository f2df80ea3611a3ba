//! Virtual time: runs a policy on the jobs of a log and measures the schedule.
//!
//! [`Simulation`] is a source of events for the one [`Driver`](miserly_core::Driver): arrivals come from the
//! log, ends from the true runtimes, which only this floor knows. [`Observer`]s see the jobs as they finish;
//! [`Metrics`] is one of them.

mod job;

mod event_queue;

mod finished;

mod filling;

mod in_order;

mod matrix;

mod interruptions;

mod metrics;

mod numbering;

mod run;

mod replay;

mod slices;

pub use event_queue::EventQueue;
pub use finished::{Ahead, Allocation, Finished, Observer, SystemSnapshot};
pub use in_order::{InOrder, Sink};
pub use interruptions::Interruptions;
pub use job::{Job, LoggedStatus};
pub use matrix::{MatrixRecord, MatrixWatch, MostSlots, PlaceHeld, SlotPlace};
pub use metrics::{
    BATCH_JOBS_LEAST, BATCHES_LEAST, BATCHES_MOST, BUCKETS_MOST, BatchRule, Batches, Bucket, Distribution,
    EXACT_MOST, Early, Group, GroupKey, Grouping, GroupingError, Groups, Guarantees, Interval, MEASURES,
    Mark, Measures, Metrics, Percentiles, Quality, SKETCH_ERROR, Series, Sliced, Summary, Suspended, Window,
    interval, student_t_95,
};
pub use replay::{ExternalEvents, ReplayLog, ReplayedEffect, RunRecord, replay, replay_over};
pub use run::{RunError, Simulation};
pub use slices::Slices;
