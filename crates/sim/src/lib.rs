#![doc = include_str!("../README.md")]

mod job;

mod label;

mod event_queue;

mod finished;

mod opportunistic;

mod in_order;

mod columns;

mod matrix;

mod interruptions;

mod metrics;

mod numbering;

mod run;

mod replay;

mod shadow;

mod slices;

pub use columns::JobColumns;
pub use event_queue::EventQueue;
pub use finished::{Allocation, Finished, Observer, OpportunisticWork, SystemSnapshot};
pub use in_order::{InOrder, Sink};
pub use interruptions::Interruptions;
pub use job::{Job, LoggedStatus};
pub use label::{Label, LabelValue};
pub use matrix::{MatrixRecord, MatrixWatch, MostSlots, PlaceHeld, SlotPlace};
pub use metrics::{
    BATCH_JOBS_LEAST, BATCHES_LEAST, BATCHES_MOST, BUCKETS_MOST, BatchRule, Batches, Bucket, ClassUse,
    DeviceUse, Distribution, EXACT_MOST, Group, GroupKey, Grouping, GroupingError, Groups, Guarantees,
    Interval, MEASURES, MOST_BOUNDS, Mark, Measures, Metrics, OpportunisticTotals, OwnGroup, OwnRanges,
    Percentiles, Quality, SKETCH_ERROR, Series, Sliced, SuitedRanges, Summary, Suspended, Window, interval,
    mean_with_half_width,
};
pub use replay::{ExternalEvents, ReplayLog, ReplayedEffect, RunRecord, replay, replay_over};
pub use run::{FeedbackJobs, RunError, Simulation};
pub use shadow::{Instance, RealEnd, RealJob, RealRound, Shadow, ShadowEvent, ShadowOutcome, ShadowState};
pub use slices::Slices;
