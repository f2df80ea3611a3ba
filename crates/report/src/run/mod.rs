//! The results of runs, forecasts and what-if questions: tables for users, documents for programs.

mod measures;

mod machine;

mod notes;

mod tables;

mod change;

mod verdict;

mod on_page;

mod slide;

mod wait_of;

mod forecast;

mod what_if;

mod group_tables;

mod layout;

pub use forecast::{
    ForecastBoundDoc, ForecastClassDoc, ForecastDoc, ForecastPartDoc, forecast_page, forecast_table,
};
pub use layout::TableStyle;
pub use notes::nothing_measured;
pub use on_page::{group_blocks, run_sections, summary_blocks};
pub use slide::slide;
pub use tables::{compare_tables, simulate_table};
pub use verdict::{Compared, GroupChanges, Verdict, best_run, needs_whole_runtimes};
pub use wait_of::{PolicyWaitDoc, WaitOfDoc, wait_of_table};
pub use what_if::{
    WhatIfDoc, WhatIfGroupDoc, WhatIfJobDoc, WhatIfRunDoc, WhatIfSlowdownDoc, what_if_sections, what_if_table,
};
