//! Structures that policies share, each with a property test against an obvious slow version, and
//! helpers that start jobs.

mod changing;

mod profile;

mod hosts;

mod queue;

mod staircase;

mod order;

mod owners;

mod start;

pub use changing::{ChangingIndex, Moment, Walk};
pub use hosts::{FreedHosts, HostPlan, WhatIf};
pub use order::{
    Bypassed, Computations, ComputedRanks, Criterion, Draw, JobFacts, Key, Keys, Order, Priority, Ranks,
    Requeued, RequeuedAt, ShareTree, ShareTreeError, Weight,
};
pub use owners::{OwnerIndex, OwnerWalk};
pub use profile::Profile;
pub(crate) use queue::procs;
pub use queue::{Position, QueueIndex, Waiting};
pub use staircase::{Admits, Everything, Staircase, StepStaircase};
pub use start::{head_start_reason, start_job};
