//! One run: a log, a machine and options, ready for any policy.
//!
//! [`RunSetup`] takes a [`Trace`](miserly_workload::Trace) and [`RunOptions`], and settles the machine.
//! It makes the [`Simulation`](miserly_sim::Simulation) of a policy and its jobs, or runs it to the
//! document of the result, [`RunDoc`]. The crate `report` has its tables and pages.
//!
//! ```
//! use miserly_run::{RunOptions, RunSetup};
//! use miserly_workload::Trace;
//!
//! let log = "; MaxProcs: 10\n1 100 -1 60 6 -1 -1 6 90 -1 1 1 -1 -1 -1 -1 -1 -1\n";
//! let setup = RunSetup::new(Trace::memory("example", log.into()), RunOptions::default())?;
//! let outcome = setup.outcome(&"easy".parse()?, false, &mut [])?;
//! assert_eq!(outcome.jobs.simulated, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// Runs the code of the manual with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Library;

mod setup;

mod recorded;

mod probe;

mod options;

mod names;

mod opportunistic;

mod system;

mod warmup;

mod document;

mod log;

mod error;

mod stopwatch;

pub use document::{
    BatchSettings, BatchesDoc, Cdf, CdfsDoc, DetailsDoc, DifferenceDoc, EachBatch, GROUP_JOBS_LEAST,
    GpuTypeUseDoc, GpuUseDoc, GpusDoc, GroupChangeDoc, GroupDoc, GuaranteeRatio, GuaranteesDoc, HostsDoc,
    IdleUseDoc, JobCountsDoc, MachineDoc, MeansDoc, MeasureDoc, MetricsDoc, NO_RECORDED_WAIT,
    OpportunisticDoc, PerMeasure, PercentileDoc, PoolDoc, PoolsDoc, PromisesDoc, QueueLengthDoc, RecordDoc,
    ReservationsDoc, RunDoc, SeriesDoc, SettingsDoc, SlicedFigures, SlicingDoc, SlotsDoc, StepDoc,
    SuspensionDoc, TimingDoc, TraceDoc, UncertaintyDoc, differences, group_label, is_of_schedule,
};
pub use error::SetupError;
pub use log::Log;
pub use opportunistic::{OpportunisticMode, OpportunisticOptions};
pub use options::RunOptions;
pub use probe::{Probe, Probes};
pub use recorded::RECORDED;
pub use setup::{FollowingJob, Preceding, RunSetup};
pub use stopwatch::Stopwatch;
