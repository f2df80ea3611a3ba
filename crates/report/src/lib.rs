//! The presentation of results: text for users, JSON for programs, files for other tools.
//!
//! This crate formats the results of the simulator and of the log analysis. It makes no decisions.

mod run;

mod jobs;

mod workload;

mod gantt;

mod matrix;

pub mod chart;

pub mod page;

mod atomic;

mod numbers;

pub use atomic::{AtomicFile, remove_unfinished};
pub use gantt::gantt;
pub use jobs::{CsvJobs, JobTable, SwfJobs};
pub use matrix::MatrixDoc;
pub use numbers::{count, decimals, figure, percent, with_half_width};
pub use run::{
    Compared, ForecastBoundDoc, ForecastClassDoc, ForecastDoc, ForecastPartDoc, GroupChanges, PolicyWaitDoc,
    TableStyle, Verdict, WaitOfDoc, WhatIfDoc, WhatIfGroupDoc, WhatIfJobDoc, WhatIfRunDoc, WhatIfSlowdownDoc,
    best_run, compare_tables, forecast_page, forecast_table, group_blocks, needs_whole_runtimes,
    nothing_measured, run_sections, simulate_table, slide, summary_blocks, wait_of_table, what_if_sections,
    what_if_table,
};
pub use workload::{
    check_json, check_text, columns_text, describe_json, describe_text, import_json, import_summary,
    import_text, preview_json, preview_text, slice_json, slice_text,
};
