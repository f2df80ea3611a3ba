//! Experiments: a file says what to run and what to show; the runs are made on all cores and kept.

pub mod file;

mod error;

mod checked;

mod options;

mod seconds;

mod plan;

mod logs;

mod machines;

mod key;

mod store;

mod execute;

pub use checked::Experiment;
pub use error::ExperimentError;
pub use execute::{Executed, Watcher, execute, open_jobs};
pub use logs::{Log, Logs, looked_in};
pub use machines::Machines;
pub use plan::{AXES, Axes, Plan, PlannedRun};
pub use store::{Index, IndexedRun, IndexedTrace, Store};
