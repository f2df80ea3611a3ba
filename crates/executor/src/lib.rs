//! The part of the daemon that works on attempts of jobs: with the daemon's own rights, or as a process of root.
//!
//! A daemon of one user has [`Attempts`] of its own. A daemon for all users has no rights. Its *executor*, the program
//! `miserly-executor`, has those of root and has the [`Attempts`]. The daemon gives it typed messages over a socket pair,
//! through a [`Client`]:
//!
//! | message | reply |
//! |---|---|
//! | seal a submission, with the connection of its client | a [`Credential`]: the user is the one that the kernel names |
//! | seal the changed submission of a job, with the connection of its client | the new credential, for its user and root |
//! | launch an attempt, with its submission and its credential | the connection to its shim, and its pidfd |
//! | find out the state of an attempt | the state, and if it lives, connection and pidfd |
//! | kill the processes of an attempt, continue its shim, kill its shim | the result |
//! | remove the folder and the control group of an attempt | done |
//! | keep other programs off some processors | done |
//!
//! > **Architecture invariant:** the executor believes no statement of the daemon about a user. A launch needs a credential,
//! > which the executor has sealed for this submission and one job, and the account must be unchanged.
//!
//! > **Architecture invariant:** a message names an attempt by its numbers, never by a path. The daemon's user can replace
//! > no folder on the way to the folders of the attempts.
#![cfg(target_os = "linux")]

mod attempts;

mod launch;

mod checks;

mod queue_programs;

mod groups;

mod gpus;

mod program;

mod failure;

mod seal;

mod used_seals;

mod account;

mod message;

mod channel;

mod prepare;

mod server;

mod client;

mod service;

mod syscall_filter;

pub use account::overflow_user;
pub use attempts::{AttemptId, Attempts};
pub use checks::LaunchChecks;
pub use client::{Client, StartError, Started, start};
pub use failure::{FindFailure, LaunchFailure, LaunchFailureKind, SealError};
pub use gpus::{DeviceHider, GpuDevice};
pub use groups::{GroupFacts, GroupPlace, GroupSettings, JobGroups};
pub use launch::LaunchRequest;
pub use message::{ResealRequest, Rules, Settings};
pub use program::{NoProgram, Program};
pub use queue_programs::{CheckpointRules, QueueRules};
pub use seal::{Credential, Issue, Key, LIFETIME, SealProblem};
pub use server::{identity, main};
pub use service::{Handover, Service, hand_over};
pub use used_seals::UsedSeals;
