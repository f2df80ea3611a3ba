//! What a shim needs of its machine.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use miserly_cgroup::{CgroupError, Limits, Usage};

use crate::connection::Connection;
use crate::end::{Exit, ProcessUsage};
use crate::files::Files;
use crate::identity::Identity;
use crate::queue_program::ProgramKind;
use crate::spec::{AttemptSpec, JobUser};
use crate::time::BootTime;

/// The machine of a shim: its clock, its connections and the processes of its job.
///
/// A [`Shim`](super::Shim) calls it from one thread, and holds nothing of it over a call. Any call may take time, so
/// the clock may show a later instant after it. A call does not wait for another process unless its documentation says so. The
/// shim may be killed before, in and after any call: then all its connections close, and the lock is released. A simulation
/// kills it by a panic in a call.
///
/// The *processes of the job* are the main process with all its descendants, and those of a program of the queue. The main process
/// leads a session and a process group, which have its number.
pub trait Host {
    /// The folder of the attempt.
    type Files: Files;

    /// A connection to another process.
    type Connection: Connection;

    /// Returns the present instant. It never decreases.
    fn now(&self) -> BootTime;

    /// Returns the time for which the machine was awake since its boot.
    fn awake(&self) -> Duration;

    /// Waits.
    fn pause(&mut self, length: Duration);

    /// Waits until a connection has a line or is closed, or until an instant.
    ///
    /// # Errors
    /// The wait is not possible.
    fn wait_for(&mut self, connection: &Self::Connection, until: BootTime) -> io::Result<()>;

    /// Returns the identity of the shim.
    ///
    /// # Errors
    /// The processes cannot be inspected.
    fn identity(&self) -> io::Result<Identity>;

    /// Returns whether an error is a shortage of the machine, which passes.
    fn is_shortage(&self, error: &io::Error) -> bool;

    /// Writes to the log of the attempt. A failure is ignored.
    fn log(&self, message: &dyn Display);

    /// Listens for daemons.
    ///
    /// # Errors
    /// A shortage, or the attempt has had a shim.
    fn listen(&mut self, files: &Self::Files) -> io::Result<()>;

    /// Returns the next connection of a daemon, if there is one.
    fn accept(&mut self) -> Option<Self::Connection>;

    /// Creates the control group, if the attempt has one, and starts the preparing program. Returns its number and the
    /// connection to it.
    ///
    /// The program sends [`SetupMessage`](super::SetupMessage)s. It becomes the command, which closes the connection, when it
    /// receives a [`Permission`](super::Permission). It exits if the connection closes before, and dies with the shim.
    ///
    /// # Errors
    /// A shortage, or the control group cannot be created. No program was started.
    fn start_main(&mut self, spec: &AttemptSpec) -> io::Result<(u32, Self::Connection)>;

    /// Returns the identity of the main process, and the autogroup of its session.
    ///
    /// # Errors
    /// The processes cannot be inspected.
    fn main_identity(&self) -> io::Result<(Identity, Option<String>)>;

    /// Starts the process that runs a program of the queue, the runner. Returns its number and the connection to it.
    ///
    /// The runner holds the lock, too. It waits for a line with a time limit, runs the program for so long, sends its
    /// [`ProgramReport`](crate::ProgramReport) and exits. It kills the program if the connection closes.
    ///
    /// # Errors
    /// A shortage. No process was started.
    fn start_program(
        &mut self,
        kind: ProgramKind,
        lock: &<Self::Files as Files>::Lock,
    ) -> io::Result<(u32, Self::Connection)>;

    /// Kills the runner with the processes of its program.
    ///
    /// # Errors
    /// The processes cannot be inspected. Some may have been killed.
    fn kill_program(&mut self) -> io::Result<()>;

    /// Starts the program that closes the user's session, if the user has one.
    ///
    /// # Errors
    /// A shortage.
    fn close_session(&mut self, user: &JobUser) -> io::Result<()>;

    /// Takes what the kernel has reported since the last call.
    fn take_events(&mut self) -> Events;

    /// Reaps a child that has exited.
    ///
    /// # Errors
    /// None that the kernel is documented to return.
    fn reap(&mut self) -> io::Result<Reaped>;

    /// Sends a signal to processes of the job. Those of other users do not receive it.
    ///
    /// # Errors
    /// The processes cannot be inspected. Some may have received the signal.
    fn signal(&mut self, signal: Signal, to: Recipients) -> io::Result<()>;

    /// Kills all processes of the job, with the control group at once.
    ///
    /// # Errors
    /// The processes cannot be inspected. Some may have been killed.
    fn kill(&mut self) -> io::Result<()>;

    /// Sends a stop signal to every running process of the job, without those of a program of the queue. With a control group that can
    /// freeze it only looks.
    ///
    /// `sent` holds the processes that earlier scans signalled, by number and start. If a scan
    /// finds no running process, the stop is proved. A process missed by that scan would have been
    /// created by a running one.
    ///
    /// # Errors
    /// The processes cannot be inspected.
    fn stop(&mut self, sent: &mut BTreeSet<(u32, u64)>) -> io::Result<StopScan>;

    /// Returns the processes that were signalled and still run.
    ///
    /// # Errors
    /// The processes cannot be inspected.
    fn running(&self) -> io::Result<Vec<u32>>;

    /// Returns whether no process of the job is left. The shim has no child.
    ///
    /// # Errors
    /// The processes cannot be inspected.
    fn are_gone(&self) -> io::Result<bool>;

    /// Moves every thread of the job to these processors and, where permitted, into a class. What the control group does
    /// already is left out.
    ///
    /// # Errors
    /// The kernel rejects the processors.
    fn place(&mut self, cpus: &[u32], class: Option<ThreadClass>) -> io::Result<()>;

    /// Moves the main process to these processors.
    ///
    /// # Errors
    /// The kernel rejects the processors.
    fn place_main(&mut self, cpus: &[u32]) -> io::Result<()>;

    /// Returns the processors on which the kernel lets the main process run. Empty if they are unknown.
    fn affinity(&self) -> Vec<u32>;

    /// Puts the main process into the idle class.
    ///
    /// # Errors
    /// The kernel refuses that.
    fn set_idle(&mut self) -> io::Result<()>;

    /// Puts the main process into a class, where permitted.
    fn set_class(&mut self, class: ThreadClass);

    /// Returns whether the main process is in the idle class.
    fn is_idle(&self) -> bool;

    /// Sets the nice value of the session's autogroup, -20 to 19. Returns `false` if the kernel requires a retry a tenth of a
    /// second later.
    fn set_nice(&mut self, nice: i32) -> bool;

    /// Returns the folder of the control group.
    fn cgroup(&self) -> Option<PathBuf>;

    /// Sets the limits of the control group. Returns the settings that the kernel refused or did not follow.
    fn limit(&mut self, limits: &Limits) -> Vec<CgroupError>;

    /// Gives the control group and those of its tree above it the highest weight, or takes it away. A failure is logged.
    fn set_weight(&mut self, raised: bool);

    /// Orders the kernel to freeze or thaw the control group.
    ///
    /// # Errors
    /// The kernel refuses that.
    fn freeze(&mut self, on: bool) -> io::Result<()>;

    /// Returns what the control group used so far.
    fn usage(&self) -> Option<Usage>;

    /// Returns the processor time that the processes of the job have used so far.
    ///
    /// # Errors
    /// The processes cannot be inspected.
    fn cpu_times(&self) -> io::Result<CpuTimes>;

    /// Writes to the standard error of the main process, unless that would wait.
    ///
    /// # Errors
    /// The process has none, or it cannot be reached.
    fn write_to_job(&mut self, text: &str) -> io::Result<()>;
}

/// Processor times of the processes of a job: of its control group under the numbers 0, or of each process under its number and
/// its start.
pub type CpuTimes = Vec<((u32, u64), CpuTime)>;

/// The processor time of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Its own.
    pub own: Duration,
    /// That of the children for which it has waited, and of theirs.
    pub of_children: Duration,
}

impl CpuTime {
    /// Returns the time of a process without children, or of a whole group.
    pub fn own(own: Duration) -> CpuTime {
        CpuTime { own, of_children: Duration::ZERO }
    }
}

/// The class of a thread in the window of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadClass {
    /// That of ordinary programs.
    Normal,
    /// That of ordinary programs, with the nice value -20.
    High,
    /// Round robin of real time, with the lowest priority of it. Where the kernel refuses that, as `High`.
    RealTime,
}

/// What the kernel reports to a shim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// A child has changed its state.
    pub child: bool,
    /// The machine or the session shuts down (`SIGTERM`, `SIGPWR`).
    pub shutdown: bool,
    /// The control group has changed its state.
    pub cgroup: bool,
}

/// The result of a look for children that have exited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reaped {
    /// A child has exited. Its number may be reused from now on.
    Child {
        /// Its number.
        pid: u32,
        /// Its exit.
        exit: Exit,
        /// What it used, with the children that it waited for.
        usage: ProcessUsage,
    },
    /// No further child has exited.
    Nothing,
    /// The shim has no child.
    NoChild,
}

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// `SIGTERM`.
    Terminate,
    /// `SIGSTOP`.
    Stop,
    /// `SIGCONT`.
    Continue,
    /// A signal of the user, by its number in the kernel. A number that no signal has is ignored.
    Number(u8),
}

/// The processes to which a signal is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipients {
    /// All processes of the job.
    All,
    /// The process group of the main process, with one system call that has no error. The main process has not been reaped.
    Group,
    /// All processes outside that group.
    Others,
    /// The main process, which has not been reaped.
    Main,
}

/// The result of a scan of processes that must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopScan {
    /// Whether all have stopped.
    pub stopped: bool,
    /// Whether all are in the process group of the main process.
    pub in_one_group: bool,
}
