#![doc = include_str!("../README.md")]

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
    OpportunisticDoc, PerMeasure, PercentileDoc, PoolDoc, PoolsDoc, PromisesDoc, QueueLengthDoc, RUN_SCHEMA,
    RecordDoc, ReservationsDoc, RunDoc, SeriesDoc, SettingsDoc, SlicedFigures, SlicingDoc, SlotsDoc, StepDoc,
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
