//! The document of a run, printed by `--json`. Its schema is a contract: docs/simulate.schema.json.

mod run;

mod settings;

mod machine;

mod measures;

mod groups;

mod slicing;

mod details;

mod difference;

/// The JSON schema of [`RunDoc`].
pub const RUN_SCHEMA: &str = include_str!("../../simulate.schema.json");

pub use details::{
    Cdf, CdfsDoc, DetailsDoc, GuaranteeRatio, GuaranteesDoc, ReservationsDoc, SeriesDoc, UncertaintyDoc,
};
pub use difference::{DifferenceDoc, GROUP_JOBS_LEAST, GroupChangeDoc, differences};
pub use groups::{GroupDoc, group_label};
pub use machine::{GpusDoc, HostsDoc, MachineDoc, PoolDoc, PoolsDoc, StepDoc};
pub use measures::{MeasureDoc, MetricsDoc, PerMeasure};
pub use run::{
    GpuTypeUseDoc, GpuUseDoc, JobCountsDoc, NO_RECORDED_WAIT, OpportunisticDoc, PercentileDoc, PromisesDoc,
    QueueLengthDoc, RecordDoc, RunDoc, SuspensionDoc, TimingDoc, TraceDoc, is_of_schedule,
};
pub use settings::{IdleUseDoc, SettingsDoc};
pub use slicing::{BatchSettings, BatchesDoc, EachBatch, MeansDoc, SlicedFigures, SlicingDoc, SlotsDoc};
