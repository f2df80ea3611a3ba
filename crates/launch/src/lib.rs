//! Runs one attempt of a job on Linux with the rights of an ordinary user.
//!
//! Each attempt has a folder and a supervising process of its own, the *shim*. The shim starts the
//! command, keeps it within its window and records its end. It needs no daemon for that. A daemon
//! starts an attempt with [`launch`](launch()) and controls it through a [`Shim`]. After a restart,
//! [`find`](find()) returns the state of each attempt. The command of an attempt runs at most once,
//! whichever process is killed and at any time.
//!
//! > **Architecture invariant:** a process is identified by number, start time and boot
//! > ([`Identity`]). It is reached through a pidfd, never by its bare number. A death is proved by a
//! > wait or by a read of `/proc`, never inferred from a sent signal.
//!
//! [`unenforced`] returns the limits that cannot be enforced without privileges.
//!
//! ```no_run
//! use std::path::Path;
//! use miserly_launch::{AttemptSpec, FoundAttempt, ShimCommand, find, launch};
//!
//! # fn example(spec: &AttemptSpec) -> Result<(), Box<dyn std::error::Error>> {
//! let (exe, attempt) = (Path::new("/usr/bin/miserly"), Path::new("/var/lib/miserly/17.1"));
//! let mut shim = launch(exe, attempt, spec)?;
//! let reply = shim.request(&ShimCommand::Stop)?;
//! drop(shim); // The daemon ends; the job does not.
//! match find(attempt)? {
//!     FoundAttempt::Alive(shim) => println!("running: {:?}", shim.identity()),
//!     FoundAttempt::Ended(end) => println!("ended: {:?}", end.exit),
//!     FoundAttempt::NeverRan => println!("can be launched again"),
//!     FoundAttempt::Lost(lost) => println!("shim killed; leftovers: {:?}", lost.killed),
//! }
//! # Ok(())
//! # }
//! ```
#![cfg(target_os = "linux")]

pub mod fault;

pub mod frame;

mod clock;

mod daemon;

mod handle;

mod probe;

pub mod shim;

mod folder;

mod check_program;

mod relay_socket;

mod identity;

mod session;

mod procfs;

mod cpus;

mod connection;

mod wait;

mod shortage;

mod sys;

pub use check_program::check_program;
pub use clock::{MachineClock, current_boot};
pub use daemon::{FoundAttempt, find, find_until, launch};
pub use handle::{AttemptProcesses, Shim, ShimParts, recorded_end};
pub use miserly_attempt::files::CPUS;
pub use miserly_attempt::shim::{BEGIN_DELAY, STOP_TIMEOUT};
pub use miserly_attempt::{
    Activity, AttemptEnd, AttemptPhase, AttemptSpec, AttemptState, BootId, BootTime, CgroupSpec,
    CommandError, CommandSpec, CriticalPriority, EarlySignal, EndCause, Exit, FindError, Hello, Identity,
    IdleRule, Interaction, JobUser, KillResult, LaunchError, LossCause, LostAttempt, OutputFile,
    PROTOCOL_VERSION, Predecessors, PrivateFolders, ProcessUsage, ProgramFailure, ProgramKind, ProgramReport,
    QueueProgram, QueuePrograms, REPLY_TIMEOUT, RecordError, ReplyMessage, ReservedWindow, ResizeNotice,
    ResourceLimits, RunMode, ShimCommand, ShimRefusal, ShimReply, SpecError, StartFailure, StartRecord,
    StoredInstant,
};
pub use probe::{
    CriticalMeans, PriorityRights, Unenforced, assume_priority_rights, leaves_idle, priority_rights,
    unenforced, usable_cpus,
};
pub use relay_socket::RelaySocket;
pub use shortage::LaunchStep;
pub use sys::pam::Pam;
pub use sys::{FilterInstruction, empty_bounding_set, install_filter};
