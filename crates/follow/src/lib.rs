//! The facts of a machine, kept up to date for pages and terminals.
//!
//! A [`Board`] has the latest facts. [`follow`] keeps those of a daemon there until it is stopped.
//! [`KnownJobs`] finds the events of jobs, each one time, from the facts that were known before.

mod board;

mod daemon;

mod job_events;

mod mirror;

mod output;

pub use board::{Board, Posted};
pub use daemon::{Following, follow};
pub use job_events::{JobEvent, JobEventKind, KnownJobs};
pub use output::{Tail, part, tail};
