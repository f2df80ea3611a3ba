//! The commands of a daemon to a shim, and their replies. `message` has their form.

use std::time::Duration;

use miserly_cgroup::CgroupError;
use serde::{Deserialize, Serialize};

use crate::end::{AttemptEnd, EndCause};
use crate::spec::ReservedWindow;
use crate::time::BootTime;

/// A command to a shim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShimCommand {
    /// Requests the state and changes nothing.
    Status,
    /// Stops every process.
    ///
    /// The reply comes when all have stopped, or after [`STOP_TIMEOUT`](crate::shim::STOP_TIMEOUT) with
    /// the processes that have not.
    Stop,
    /// Resumes every process.
    Resume,
    /// Begins the window: the job leaves the idle class and gets these processors.
    ///
    /// A stopped job is resumed after all other changes.
    BeginWindow {
        /// Processors, by number.
        cpus: Vec<u32>,
        /// End of the window.
        end: BootTime,
    },
    /// Sets the window of an opportunistic job.
    ///
    /// The shim begins the window itself if no daemon does. If the window has already begun, only
    /// its end changes.
    SetWindow(ReservedWindow),
    /// Takes the window back that was set. Refused if it has begun.
    RevokeWindow,
    /// Runs the command of a waiting shim before its window, on idle resources.
    RunEarly {
        /// Processors, by number.
        cpus: Vec<u32>,
    },
    /// Ends a waiting shim, whose attempt becomes void. Refused if the command has begun.
    Withdraw,
    /// Moves the job to other processors at once.
    SetCpus {
        /// Processors, by number.
        cpus: Vec<u32>,
    },
    /// Changes the end of the window.
    SetEnd {
        /// End of the window.
        end: BootTime,
        /// For a stopped job: longest time that it runs after the shim resumes it without a daemon.
        ///
        /// The window then ends at the earlier of the two instants. A later command that sets the
        /// end clears this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_after_resume: Option<Duration>,
    },
    /// Ends the window after a total running time, for a job that takes turns with others.
    ///
    /// Time in which the job is stopped does not count.
    SetRunLimit {
        /// Total running time, including the time already run.
        limit: Duration,
    },
    /// Sends a signal to the processes, once they run the command. A number that was received before changes nothing.
    Signal {
        /// Number of the signal, from 1. It is higher than those of earlier signals.
        nth: u32,
        /// Number of the signal in the kernel, such as 10 for `SIGUSR1`.
        signal: u8,
        /// Whether only the main process receives it.
        main_only: bool,
    },
    /// Sends `SIGTERM`, and `SIGKILL` after the grace period; `SIGKILL` at once without one. The
    /// recorded cause is [`EndCause::User`].
    Kill {
        /// Time from `SIGTERM` to `SIGKILL`.
        grace: Duration,
    },
    /// Runs the checkpoint command of the queue, and kills what is left of the job when that has ended, or at an instant.
    ///
    /// A stopped job is resumed first. The recorded cause is [`EndCause::User`], and the record has the report of the command.
    Checkpoint {
        /// Latest instant at which the job is killed, with the command.
        until: BootTime,
    },
}

/// A reply of a shim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShimReply {
    /// The command was carried out.
    ///
    /// [`ShimCommand::Kill`] is answered when termination begins; the shim exits when it is
    /// complete.
    Done(AttemptState),
    /// Not all processes have stopped.
    NotStopped {
        /// State of the job.
        state: AttemptState,
        /// Processes that were still running.
        running: Vec<u32>,
    },
    /// The command was rejected.
    Refused(ShimRefusal),
    /// A reply of a later version, which this program does not know. No shim sends it.
    Unknown {
        /// Error of the parser.
        error: String,
    },
}

/// A reason for which a shim rejects a command or an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ShimRefusal {
    /// The job is already being terminated.
    #[error("the job is already being terminated")]
    Ending,
    /// The window has begun.
    #[error("its window has begun")]
    Begun,
    /// The processor list is invalid, or a processor does not exist.
    #[error("cannot run on the processors {cpus:?}: {error}")]
    Cpus {
        /// Processors.
        cpus: Vec<u32>,
        /// Error of the kernel.
        error: String,
    },
    /// The kernel did not accept a setting of the control group.
    #[error("cannot set the control group of the job: {error}")]
    Cgroup {
        /// File, value and error of the kernel.
        error: String,
    },
    /// The processes cannot be inspected.
    #[error("cannot inspect the processes of the job: {error}")]
    Processes {
        /// Error of the kernel.
        error: String,
    },
    /// The message is malformed, or a command of a later version.
    #[error("unknown command: {error}")]
    Unknown {
        /// Error of the parser.
        error: String,
    },
    /// The attempt was declared void by the daemon that launched it or by a later one.
    #[error("the attempt was declared void before its shim began")]
    Void,
    /// The attempt has or had a shim.
    #[error("the attempt already has or had a shim")]
    Taken,
    /// The shim cannot create its files in the folder.
    #[error("the shim cannot begin: {error}")]
    Begin {
        /// Underlying error.
        error: String,
    },
}

impl ShimCommand {
    /// Returns the processors on which the command puts the job, if it does so.
    pub fn cpus(&self) -> Option<&[u32]> {
        match self {
            ShimCommand::BeginWindow { cpus, .. }
            | ShimCommand::SetCpus { cpus }
            | ShimCommand::RunEarly { cpus } => Some(cpus),
            _ => None,
        }
    }
}

impl ShimRefusal {
    pub(crate) fn from_cpus(cpus: &[u32], error: &dyn ToString) -> ShimRefusal {
        ShimRefusal::Cpus { cpus: cpus.to_owned(), error: error.to_string() }
    }

    pub(crate) fn from_cgroup(cpus: &[u32], error: &CgroupError) -> ShimRefusal {
        if error.is_about_cpus() {
            return ShimRefusal::from_cpus(cpus, error);
        }
        ShimRefusal::Cgroup { error: error.to_string() }
    }

    pub(crate) fn from_processes(error: &std::io::Error) -> ShimRefusal {
        ShimRefusal::Processes { error: error.to_string() }
    }

    pub(crate) fn check_cpus(cpus: &[u32]) -> Result<(), ShimRefusal> {
        crate::spec::check_cpus(cpus).map_err(|error| ShimRefusal::from_cpus(cpus, &error))
    }
}

/// The state of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptState {
    /// Phase of the job.
    pub phase: AttemptPhase,
    /// Whether the main process is in the idle class.
    ///
    /// `true` after [`ShimCommand::BeginWindow`] means that the kernel did not let the job leave
    /// the class (`leaves_idle` of `miserly-launch`).
    pub idle: bool,
    /// Processors on which the job shall run.
    pub cpus: Vec<u32>,
    /// Processors on which the kernel lets the main process run. Empty if they are unknown.
    #[serde(default)]
    pub affinity: Vec<u32>,
    /// End of the window, once the window has begun.
    pub end: Option<BootTime>,
    /// The window, if it is known and has not begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<ReservedWindow>,
    /// The activity of the job, if it has a rule for idle jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
}

/// The activity of a job, as its shim measures it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// Time between two looks at the job.
    pub interval: Duration,
    /// Instant since which the job is idle; `None` if it is not.
    pub idle_since: Option<BootTime>,
}

/// The phase of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptPhase {
    /// The shim waits for the window of the job, without a process.
    Waiting,
    /// The command is not running yet.
    Starting,
    /// The job is running.
    Running,
    /// A stop was requested and some processes are still running.
    Stopping,
    /// All processes have stopped.
    Stopped,
    /// The job is being terminated; without a cause, because its main process has exited.
    Ending(Option<EndCause>),
    /// The job has ended but its end cannot be recorded, for example on a full disk. The shim
    /// retries.
    Ended(Box<AttemptEnd>),
}
