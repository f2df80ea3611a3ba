//! Experiments: from a file to a plan of runs, which are made on all cores and stored.

pub mod file;

mod error;

mod axes;

mod checked;

mod options;

mod paths;

mod seconds;

mod read;

mod reading;

mod plan;

mod folders;

mod logs;

mod machines;

mod key;

mod store;

mod execute;

pub use axes::{AXES, Axes, MAIN, READING};
pub use checked::Experiment;
pub use error::ExperimentError;
pub use execute::{Executed, Part, Watcher, execute, execute_part, open_jobs, open_parts};
pub use folders::{find, looked_in};
pub use logs::Logs;
pub use machines::Machines;
pub use plan::{Plan, PlannedRun};
pub use reading::Reading;
pub use store::{CLUSTER, Index, IndexedRun, IndexedTrace, Store};
