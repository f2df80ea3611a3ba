//! The laboratory: logs run under policies.
//!
//! [`Prepared`] is a log made ready to be run under any policy.

pub mod experiment;

pub mod results;

pub mod present;

mod session;

pub mod papers;

mod kept;

mod overview;

mod prepared;

mod filling;

pub mod machine;

mod stopwatch;

mod table;

pub use filling::{Filling, FillingOptions};
pub use machine::{MachineError, MachineSpec};
pub use overview::{Overview, overview};
pub use prepared::{PrepareError, Prepared, RunOptions};
pub use session::{Session, page, write_page};
pub use stopwatch::Stopwatch;
pub use table::Table;
