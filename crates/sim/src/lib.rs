//! Virtual time: runs a policy on jobs and measures the schedule.
//!
//! [`Simulation`] is a source of events for the [`Driver`](miserly_core::Driver). Arrivals come
//! from an iterator of [`Job`]s. Ends follow from their runtimes, which no policy sees.
//! [`Observer`]s see the jobs as they finish; [`Metrics`] is one of them.
//!
//! ```
//! use std::convert::Infallible;
//!
//! use miserly_core::{EventOrder, Machine, Request, Resources, Span, Time};
//! use miserly_policies::PolicySpec;
//! use miserly_sim::{Job, Metrics, Simulation};
//!
//! let machine = Machine::plain(4u64);
//! let policy = "easy".parse::<PolicySpec>()?.build(&machine, 0)?;
//! let request = |number| Request::new(number, Time::ZERO, Span::from_ticks(90), Resources::cpus(4u64));
//! let mut jobs = (1..=3).map(|number| Ok::<_, Infallible>(Job::new(request(number), Span::from_ticks(60))));
//! let mut metrics = Metrics::new(4, Span::ZERO);
//! Simulation::new(machine, policy, EventOrder::Batched).run(&mut jobs, &mut [&mut metrics])?;
//! assert_eq!(metrics.measures.wait.summary().mean, Some(60.0 / 1e6));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
