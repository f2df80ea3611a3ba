//! One attempt of a job as a machine without I/O: its records, its protocol and what its shim decides.
//!
//! The crate decides, and traits have the effects. `miserly-launch` implements them over Linux. A simulation implements them
//! over one seed, and runs the same decisions.
//!
//! | trait | has the effects of |
//! |---|---|
//! | [`Files`] | the folder of an attempt |
//! | [`Connection`] | a connection between two processes |
//! | [`shim::Host`] | a [`shim::Shim`] |
//! | [`DaemonHost`] | [`launch`](launch()) and [`find`](find()), in a daemon or its executor |
//! | [`retire::Remains`] | [`retire::retire`], in a daemon |
//!
//! > **Architecture invariant:** nothing here reads a clock, a file, a socket or a process. The only modules of the system in use
//! > are those for strings (`std::os::unix::ffi`).

/// The sources that define what a daemon and its shim have in common.
pub const SHIM_SOURCES: [&str; 10] = [
    include_str!("spec.rs"),
    include_str!("protocol.rs"),
    include_str!("message.rs"),
    include_str!("files.rs"),
    include_str!("end.rs"),
    include_str!("launch.rs"),
    include_str!("queue_program.rs"),
    include_str!("shim/supervisor.rs"),
    include_str!("shim/queue_programs.rs"),
    include_str!("shim/limits.rs"),
];

mod time;

mod boot;

mod identity;

mod spec;

mod queue_program;

mod protocol;

mod message;

mod connection;

mod end;

pub mod files;

mod daemon_host;

mod commands;

mod launch;

mod find;

pub mod retire;

mod error;

pub mod shim;

mod lossless;

pub use boot::{BootId, StoredInstant};
pub use commands::{Commands, ConnectedShim};
pub use connection::Connection;
pub use daemon_host::{DaemonHost, KillResult, ShimOf};
pub use end::{AttemptEnd, EndCause, Exit, ProcessUsage, StartFailure};
pub use error::{CommandError, FindError, LaunchError};
pub use files::{Files, RecordError, StartRecord};
pub use find::{FoundAttempt, LossCause, LostAttempt, find};
pub use identity::Identity;
pub use launch::launch;
pub use message::{Handshake, Hello, PROTOCOL_VERSION, REPLY_TIMEOUT, ReplyMessage};
pub use protocol::{Activity, AttemptPhase, AttemptState, ShimCommand, ShimRefusal, ShimReply};
pub use queue_program::{ProgramFailure, ProgramKind, ProgramReport, QueueProgram, QueuePrograms};
pub use spec::{
    AttemptSpec, CgroupSpec, CommandSpec, CriticalPriority, EarlySignal, IdleRule, Interaction, JobUser,
    MAX_CPU, OutputFile, Predecessors, PrivateFolders, ReservedWindow, ResizeNotice, ResourceLimits, RunMode,
    SpecError, SpecRecord,
};
pub use time::BootTime;
