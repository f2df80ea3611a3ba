//! Structures that policies share, each with a property test against an obvious slow version, and
//! helpers that start jobs.

mod profile;

mod hosts;

mod queue;

mod staircase;

mod order;

mod start;

pub use hosts::{FreedHosts, HostPlan, WhatIf};
pub use order::{Bypassed, Criterion, Draw, Key, Order, Priority, Weight};
pub use profile::Profile;
pub(crate) use queue::procs;
pub use queue::{Position, QueueIndex, Waiting};
pub use staircase::{Admits, ProfileStaircase, Staircase};
pub use start::{head_start_reason, start_job};
