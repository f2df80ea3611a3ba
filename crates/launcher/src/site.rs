//! The interface between the launcher's decisions and the world.

use std::fmt::Debug;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use miserly_engine::{Attempt, Input, Usage};
use miserly_executor::{FindFailure, LaunchFailure, LaunchRequest};
use miserly_launch::{
    AttemptEnd, AttemptSpec, BootTime, CommandError, KillResult, LossCause, ProgramKind, ReplyMessage,
    ShimCommand, StoredInstant,
};

use crate::attempt::Begin;
use crate::clock::{BootClock, Clocks};
use crate::crash_point::CrashPoint;
use crate::tasks::{PendingLaunch, Task};

/// The shims of a site.
pub(crate) type ShimOf<S> = <<S as Site>::Host as Host>::Shim;

/// The machine on which attempts run: its clock, and the files and processes of attempts.
///
/// # Contract
/// The loop calls [`clock`](Host::clock), [`pass`](Host::pass), [`wake`](Host::wake), [`kill_shim`](Host::kill_shim),
/// [`end_partition`](Host::end_partition), [`usage`](Host::usage) and [`count_failure`](Host::count_failure), which do not
/// wait. Tasks and the start call the others, which may wait. The process may die at each call, before the effect or after it.
pub trait Host {
    /// The handle of a shim.
    type Shim: ShimHandle;
    /// The clocks.
    type Clocks: Clocks;

    /// Returns the daemon's clock.
    fn clock(&self) -> &BootClock<Self::Clocks>;

    /// Passes a step at which a test may kill the daemon.
    fn pass(&self, point: CrashPoint);

    /// Waits for this time.
    fn pause(&self, time: Duration);

    /// Returns the attempts that have a folder, in order.
    ///
    /// # Errors
    /// If the folders cannot be listed.
    fn attempts(&self) -> io::Result<Vec<Attempt>>;

    /// Returns the highest number of a job that has a folder or a kept record of an attempt, or 0.
    ///
    /// # Errors
    /// If the folders cannot be listed.
    fn highest_job(&self) -> io::Result<i64>;

    /// Returns the recorded start of an attempt, if there is a readable record.
    fn started(&self, attempt: Attempt) -> Option<StoredInstant>;

    /// Returns the processors that are online, if they are known.
    fn online_cpus(&self) -> Option<Vec<u32>>;

    /// Returns the folder of an attempt, whether it exists or not.
    fn folder(&self, attempt: Attempt) -> PathBuf;

    /// Returns whether an attempt has a folder.
    fn has_folder(&self, attempt: Attempt) -> bool;

    /// Returns the specification of an attempt. Logs the reason if it cannot be read.
    fn spec(&self, attempt: Attempt) -> Option<AttemptSpec>;

    /// Launches an attempt, whose folder must not exist. Waits for its shim.
    ///
    /// # Errors
    /// The launch failed. Only [`find`](Host::find) returns whether the attempt runs nevertheless.
    fn launch(&self, request: LaunchRequest) -> Result<Self::Shim, LaunchFailure>;

    /// Returns the state of an attempt. Waits at most for a time.
    ///
    /// # Errors
    /// If the state cannot be found out now, or never.
    fn find(&self, attempt: Attempt, wait: Duration) -> Result<Found<Self::Shim>, FindFailure>;

    /// Kills the processes of an attempt but its shim. Waits for their deaths, at most for a time.
    ///
    /// # Errors
    /// If the processes cannot be found out.
    fn kill_job(&self, attempt: Attempt, wait: Duration) -> io::Result<KillResult>;

    /// Keeps the record of an attempt that is over, and removes all else of it.
    fn retire(&self, attempt: Attempt);

    /// Removes the folder and the control group of an attempt that is over.
    fn remove(&self, attempt: Attempt);

    /// Continues a stopped shim.
    ///
    /// # Errors
    /// If the system refuses it.
    fn wake(&self, attempt: Attempt, shim: &Self::Shim) -> io::Result<()>;

    /// Kills a shim whose job has no process left.
    ///
    /// # Errors
    /// If the system refuses it.
    fn kill_shim(&self, attempt: Attempt, shim: &Self::Shim) -> io::Result<()>;

    /// Gives the processors of an attempt that has ended back to other programs.
    fn end_partition(&self, attempt: Attempt);

    /// Returns what an attempt has used so far, if it has a control group.
    fn usage(&self, attempt: Attempt) -> Option<Usage>;

    /// Counts a failed program of a queue.
    fn count_failure(&self, kind: ProgramKind);
}

/// What supervises attempts from now on: it passes [`LoopMessage::Begin`](crate::LoopMessage::Begin) to a
/// [`ShimLoop`](crate::ShimLoop). `T` is the handle of a shim.
pub trait Supervisor<T> {
    /// Supervises an attempt. Does not wait.
    fn supervise(&self, attempt: Attempt, begin: Begin<T>);
}

/// The surroundings of a [`ShimLoop`](crate::ShimLoop).
///
/// # Contract
/// No method waits or calls the loop. A shim is watched under the number of its attempt: each change becomes a [`Readiness`] for
/// [`ShimLoop::ready`](crate::ShimLoop::ready). A task's result comes back as
/// [`LoopMessage::Finished`](crate::LoopMessage::Finished).
pub trait Site {
    /// The machine.
    type Host: Host;
    /// A watched partition of a job.
    type Partition;

    /// Returns the machine.
    fn host(&self) -> &Self::Host;

    /// Returns the present instant.
    fn now(&self) -> BootTime {
        self.host().clock().boot_now()
    }

    /// Reports to the engine.
    fn report(&self, input: Input);

    /// Has [`run_launch`](crate::run_launch) run beside the loop. At most [`LAUNCHERS`](crate::LAUNCHERS) are under way.
    fn launch(&self, attempt: Attempt, pending: PendingLaunch);

    /// Has [`run_task`](crate::run_task) run beside the loop.
    fn submit(&self, attempt: Attempt, task: Task);

    /// Begins to watch for the exit of a shim.
    ///
    /// # Errors
    /// If the system lacks memory for it.
    fn watch_exit(&self, number: u64, shim: &ShimOf<Self>) -> io::Result<()>;

    /// Ends [`watch_exit`](Site::watch_exit).
    fn unwatch_exit(&self, shim: &ShimOf<Self>);

    /// Begins to watch the present connection of a shim for replies and for its loss.
    ///
    /// # Errors
    /// If the system lacks memory for it.
    fn watch_connection(&self, number: u64, shim: &ShimOf<Self>) -> io::Result<()>;

    /// Ends [`watch_connection`](Site::watch_connection), before the connection is replaced or dropped.
    fn unwatch_connection(&self, shim: &ShimOf<Self>);

    /// Begins to watch the partition of an attempt, if its group can be one.
    fn watch_partition(&self, number: u64, attempt: Attempt) -> Option<Self::Partition>;

    /// Returns the state of a partition, as the kernel names it. Returns `None` if the group is gone.
    fn partition_state(&self, partition: &Self::Partition) -> Option<String>;

    /// Ends [`watch_partition`](Site::watch_partition).
    fn unwatch_partition(&self, partition: Self::Partition);

    /// Returns whether a further launch would leave too few descriptors.
    fn is_short_of_descriptors(&self) -> bool;

    /// Takes note of the number of launches that wait for descriptors.
    fn set_waiting(&self, launches: usize);

    /// Takes note that another attempt has a shim.
    fn note_shim(&self);
}

/// The connection to a shim that was alive when the handle was created, and its records.
///
/// # Contract
/// No method waits. A failed connection stays failed until [`reconnect`](ShimHandle::reconnect).
pub trait ShimHandle: Debug {
    /// Sends a command and returns its number.
    ///
    /// # Errors
    /// The shim has exited or does not read.
    fn send(&mut self, command: &ShimCommand) -> Result<u64, CommandError>;

    /// Returns the next reply, or `None` if there is none yet.
    ///
    /// # Errors
    /// The shim has exited and no reply is left.
    fn receive(&mut self) -> Result<Option<ReplyMessage>, CommandError>;

    /// Connects again.
    ///
    /// # Errors
    /// The shim has exited, or takes no connections now.
    fn reconnect(&mut self) -> io::Result<()>;

    /// Returns the version of the shim's protocol, as far as it is known.
    fn version(&self) -> u32;

    /// Returns whether the shim is stopped. If that cannot be found out, it counts as running.
    fn is_stopped(&self) -> bool;

    /// Returns the start of the command, or `None` without a readable record.
    fn start(&self) -> Option<Started>;

    /// Returns the end of the attempt, or `None` without a readable record.
    fn end(&self) -> Option<AttemptEnd>;
}

/// The start of a command, as its shim recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The instant from which the command was permitted to run.
    pub at: StoredInstant,
    /// The time limit of the epilog, if there is one.
    pub epilog: Option<Duration>,
}

/// The state of an attempt, with the handle of its shim.
#[derive(Debug)]
pub enum Found<T> {
    /// The shim is alive and connected.
    Alive(T),
    /// The attempt ended.
    Ended(Box<AttemptEnd>),
    /// The command never ran and never will.
    NeverRan,
    /// The shim is dead and left no record of the end. No process of the job is left.
    Lost(LossCause),
}

/// A change of something watched, by the number of its attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The shim has exited.
    Exit(u64),
    /// The connection of the shim has a reply, or is broken.
    Connection(u64),
    /// The partition of the attempt has changed.
    Partition(u64),
}
