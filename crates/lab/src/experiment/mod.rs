//! Experiments: a file says what to run and what to show; the runs are made on all cores and kept.

pub mod file;

mod error;

mod checked;

mod options;

mod plan;

mod logs;

mod key;

mod store;

mod execute;

pub use checked::Experiment;
pub use error::ExperimentError;
pub use execute::{Executed, Watcher, execute};
pub use logs::{Log, Logs};
pub use plan::{Axes, Plan, PlannedRun};
pub use store::{Index, IndexedRun, IndexedTrace, Store};
