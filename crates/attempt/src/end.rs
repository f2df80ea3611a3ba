//! The end of an attempt.

use std::path::PathBuf;
use std::time::Duration;

use miserly_cgroup::Usage;
use serde::{Deserialize, Serialize};

use crate::boot::StoredInstant;
use crate::identity::Identity;
use crate::lossless;
use crate::queue_program::{ProgramFailure, ProgramReport};

/// The end of an attempt. It is written when no process of the job or of its epilog is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptEnd {
    /// Exit of the main process.
    pub exit: Exit,
    /// Cause of a termination from outside; `None` if the main process ended by itself.
    ///
    /// The remaining processes of the job were then terminated.
    pub cause: Option<EndCause>,
    /// Instant at which no process was left, also of the epilog.
    #[serde(flatten)]
    pub at: StoredInstant,
    /// Time from the kill instant until the last process of the job had gone, if the job was killed.
    pub late: Option<Duration>,
    /// What all processes used, if the attempt had a control group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What the processes used that the shim has reaped, if the attempt had no control group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<ProcessUsage>,
    /// How often the job was stopped.
    #[serde(default)]
    pub stops: u32,
    /// The prolog, if it was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prolog: Option<Box<ProgramReport>>,
    /// The epilog, if it was begun. It changes neither exit nor cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epilog: Option<Box<ProgramReport>>,
    /// The checkpoint command, if a daemon asked for it. The job is written out if it has not failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Box<ProgramReport>>,
}

impl AttemptEnd {
    /// Returns the same end. A record of an earlier version does not name its boot: that is the boot of the shim, which has
    /// outlived none. `shim` reads its identity.
    #[must_use]
    pub fn or_boot_of<E>(self, shim: impl FnOnce() -> Result<Option<Identity>, E>) -> AttemptEnd {
        if self.at.parts().1.is_some() {
            return self;
        }
        let at = self.at.or_boot(shim().ok().flatten().map(|shim| shim.boot_id));
        AttemptEnd { at, ..self }
    }

    /// Returns whether `SIGTERM` of an unknown sender ended the job, or its prolog.
    pub(crate) fn may_be_shutdown(&self) -> bool {
        self.cause.is_none() && self.exit.may_be_shutdown()
    }
}

/// What processes used, as the kernel reports it to their parent (`wait4`).
///
/// It covers the main process, orphans that the shim adopted, and the children that these waited for. A process whose
/// parent ignores the ends of its children is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// Time on processors in user mode.
    pub user: Duration,
    /// Time on processors in the kernel.
    pub system: Duration,
    /// The highest resident memory of a single process, in bytes. It is at least that of the program that becomes the
    /// command.
    pub memory_peak: u64,
}

impl ProcessUsage {
    /// Adds what another process used.
    pub(crate) fn add(&mut self, other: ProcessUsage) {
        self.user += other.user;
        self.system += other.system;
        self.memory_peak = self.memory_peak.max(other.memory_peak);
    }
}

/// The exit of a main process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// Exit code, 0 to 255.
    Code(i32),
    /// Termination by a signal.
    Signal {
        /// Signal number.
        signal: i32,
        /// Whether a core was dumped.
        core: bool,
    },
    /// The command could not be started.
    Failed(StartFailure),
}

impl Exit {
    /// Returns whether the exit looks like the effect of `SIGTERM`.
    fn is_termination(&self) -> bool {
        const TERM: i32 = 15;
        match self {
            Exit::Code(code) => *code == 128 + TERM,
            Exit::Signal { signal, .. } => *signal == TERM,
            Exit::Failed(_) => false,
        }
    }

    /// Returns whether it may be the effect of a `SIGTERM` that the shim gets, too: to the command, to its prolog, or to the
    /// program that waits for the prolog.
    pub(crate) fn may_be_shutdown(&self) -> bool {
        self.is_termination() || matches!(self, Exit::Failed(StartFailure::Prolog(_) | StartFailure::Ended))
    }
}

/// A reason for which a command could not be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum StartFailure {
    /// The working directory does not exist or is not accessible.
    #[error("cannot change to the directory {}: {error}", path.display())]
    WorkingDirectory {
        /// The directory.
        #[serde(with = "lossless")]
        path: PathBuf,
        /// Error of the kernel.
        error: String,
    },
    /// The input file cannot be opened.
    #[error("cannot open {} for input: {error}", path.display())]
    InputFile {
        /// The file.
        #[serde(with = "lossless")]
        path: PathBuf,
        /// Error of the kernel.
        error: String,
    },
    /// An output file cannot be opened.
    #[error("cannot open {} for output: {error}", path.display())]
    OutputFile {
        /// The file.
        #[serde(with = "lossless")]
        path: PathBuf,
        /// Error of the kernel.
        error: String,
    },
    /// The program does not exist or is not executable.
    #[error("cannot run {}: {error}", path.display())]
    Program {
        /// The program as specified, or the file of the script.
        #[serde(with = "lossless")]
        path: PathBuf,
        /// Error of the kernel.
        error: String,
    },
    /// Processors, scheduling class or limits could not be set.
    #[error("cannot set {what}: {error}")]
    Setup {
        /// The setting.
        what: String,
        /// Error of the kernel.
        error: String,
    },
    /// The prolog of the queue failed.
    #[error("prolog failed: {0}")]
    Prolog(ProgramFailure),
    /// The job was terminated before its command was started.
    #[error("the job was terminated before its command was started")]
    Ended,
}

impl StartFailure {
    /// Returns the failure of a setting.
    pub fn setup(what: &str, error: &dyn ToString) -> StartFailure {
        StartFailure::Setup { what: what.to_owned(), error: error.to_string() }
    }
}

/// A cause of termination from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    /// The window ended.
    Time,
    /// A request of the user or an administrator.
    User,
    /// The machine or the session shut down: the shim received `SIGTERM` or `SIGPWR`.
    Shutdown,
    /// The job needed more memory than it had requested, and the kernel killed it.
    Memory,
    /// The job used almost no processor time for as long as its queue permits.
    Idle,
}
