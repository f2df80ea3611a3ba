//! Structures that policies share, each with a property test against an obvious slow version.

mod profile;

mod hosts;

mod queue;

mod staircase;

mod order;

pub use hosts::{FreedHosts, HostPlan, WhatIf};
pub use order::{Bypassed, Criterion, Draw, Key, Order, Priority, Weight};
pub use profile::Profile;
pub use queue::{Position, QueueIndex, Waiting};
pub use staircase::{Admits, ProfileStaircase, Staircase};
