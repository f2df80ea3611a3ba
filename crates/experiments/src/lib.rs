//! Experiments: many runs of logs under policies, and the presentation of their results.
//!
//! [`experiment`] goes from a file to a plan of runs, which it makes on all cores and stores.
//! [`results`] reads them back. [`present`] makes tables, charts and claims of them.
//! [`Session`] is the whole way. [`overview`](fn@overview) makes the page of a few runs that are no experiment.

pub mod experiment;

pub mod results;

pub mod present;

mod session;

pub mod papers;

mod queue_record;

mod recording;

mod run_result;

pub mod chart_request;

pub mod selector;

mod run_charts;

mod group_grid;

mod difference;

mod overview;

mod table;

pub use overview::{LogRuns, Overview, overview};
pub use recording::Recording;
pub use session::{ExperimentFile, Session, log_folders, page, quoted, run_part, write_page};
pub use table::Table;
