//! The decisions of the daemon's launcher.
//!
//! A [`ShimLoop`] supervises all attempts. [`start()`] brings a daemon to its first round, with the attempts of an earlier
//! daemon. Their ways to the world are four traits:
//!
//! | trait | purpose |
//! |---|---|
//! | [`Host`] | clock, files and processes of attempts; calls may wait |
//! | [`Site`] | what surrounds a [`ShimLoop`]: tasks, watched descriptors, reports; no call waits |
//! | [`Supervisor`] | how a start passes attempts to the loop; no call waits |
//! | [`ShimHandle`] | the connection to a shim; no call waits |
//!
//! The daemon implements them with threads and descriptors. A simulation implements them on one thread.
//!
//! > **Architecture invariant:** this crate has no clock, thread, file, process or descriptor. Between two effects it keeps no
//! > state that the files of the attempts lack, so its process may die at each call.

mod site;

mod clock;

mod crash_point;

mod message;

mod shim_loop;

mod activity;
mod attempt;

mod supervise;

mod held_windows;

mod grants;

mod start_watch;

mod parking;

mod desired;

mod force;

mod backoff;

mod tasks;

mod queue_programs;

mod take_up;

mod sweep;

mod start;

mod newer;

mod outcome;

mod convert;

mod check;

mod rotation;

mod memory;

pub use attempt::Begin;
pub use check::check;
pub use clock::{Boot, BootClock, Clocks, EarlierBoots};
pub use convert::{duration, group_usage, id};
pub use crash_point::CrashPoint;
pub use desired::Ack;
pub use memory::{MemoryDecision, MemoryReading, OpportunisticJob};
pub use message::{AttemptMessage, LoopMessage};
pub use newer::{LastAttempt, LastAttempts, Recovered, lose_missing};
pub use rotation::{Rotation, STOP_PATIENCE, Switch};
pub use shim_loop::ShimLoop;
pub use site::{Found, Host, Readiness, ShimHandle, Site, Started, Supervisor};
pub use start::{StartError, StartOptions, start};
pub use sweep::UnknownAttempts;
pub use tasks::{FailedLaunch, LAUNCHERS, PendingLaunch, Task, TaskResult, run_launch, run_task};

#[cfg(test)]
mod tests;
