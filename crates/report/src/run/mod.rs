//! The results of a run: a document for programs and tables for users.

mod details;

mod measures;

mod document;

mod machine;

mod groups;

mod slicing;

mod tables;

mod verdict;

mod on_page;

mod wait_of;

mod forecast;

mod what_if;

mod group_tables;

mod layout;

pub use details::{
    Cdf, CdfsDoc, DetailsDoc, DifferenceDoc, GuaranteeRatio, GuaranteesDoc, ReservationsDoc, SeriesDoc,
    UncertaintyDoc, differences,
};
pub use document::{
    IdleUseDoc, JobCountsDoc, NO_RECORDED_WAIT, OpportunisticDoc, PercentileDoc, PromisesDoc, QueueLengthDoc,
    RunDoc, SettingsDoc, SuspensionDoc, TimingDoc, TraceDoc,
};
pub use forecast::{
    ForecastBoundDoc, ForecastClassDoc, ForecastDoc, ForecastPartDoc, forecast_page, forecast_table,
};
pub use groups::GroupDoc;
pub use layout::TableStyle;
pub use machine::{HostsDoc, MachineDoc, PoolDoc, PoolsDoc, StepDoc};
pub use measures::{MeasureDoc, MetricsDoc, PerMeasure};
pub use on_page::{group_blocks, summary_blocks};
pub use slicing::{BatchSettings, BatchesDoc, EachBatch, MeansDoc, SlicedFigures, SlicingDoc, SlotsDoc};
pub use tables::{compare_tables, simulate_table};
pub use verdict::verdict;
pub use wait_of::{PolicyWaitDoc, WaitOfDoc, wait_of_table};
pub use what_if::{WhatIfDoc, WhatIfGroupDoc, WhatIfJobDoc, WhatIfRunDoc, WhatIfSlowdownDoc, what_if_table};
