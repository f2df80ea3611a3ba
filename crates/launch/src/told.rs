//! What the daemon tells a shim, and what the shim answers: one line of JSON each, over the socket `ctl` of the folder.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::end::{Cause, End};
use crate::order::Window;
use crate::time::BootTime;

/// What a shim is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// Nothing: how is it?
    Hello,
    /// Stop every process. It is answered when all have stopped, or with those that have not within
    /// [`STOP_PATIENCE`](crate::STOP_PATIENCE).
    Stop,
    /// Let every process go on.
    Continue,
    /// The window begins: out of the idle class, on these processors, until then. A stopped job goes on, and only after all else is done.
    Critical {
        /// The processors, by number.
        cpus: Vec<u32>,
        /// The end of the window.
        end: BootTime,
    },
    /// The window is then, for a job that is ahead of it: it begins by itself where no daemon begins it. One that has begun by itself
    /// goes on, and has that end.
    Window(Window),
    /// Other processors, from now on.
    Cpus {
        /// The processors, by number.
        cpus: Vec<u32>,
    },
    /// Another end of the window.
    EndAt {
        /// The end of the window.
        end: BootTime,
        /// For a job that is stopped: so long after it goes on by itself its window ends, if that is before. Until it is told
        /// another end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left: Option<Duration>,
    },
    /// The job takes turns with others: its window ends when it has run for so long in all. The time in which it is stopped does not count.
    RunFor {
        /// How long it may run, what it has run already included.
        limit: Duration,
    },
    /// Ask the job to leave, and kill it when the grace is over; at once without one.
    Kill {
        /// From `SIGTERM` to `SIGKILL`.
        grace: Duration,
        /// Why.
        cause: Cause,
    },
}

/// What a shim answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It is done; [`Told::Kill`] alone is answered when it has begun, and its end is that of the shim.
    Done(State),
    /// Not all have stopped.
    NotStopped {
        /// How the job stands.
        state: State,
        /// The processes that were still running.
        running: Vec<u32>,
    },
    /// It was not done.
    Refused(Refusal),
}

/// Why a shim did not do what it was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The job is already being ended.
    #[error("the job is already being ended")]
    Ending,
    /// The processors make no sense, or are not there.
    #[error("cannot run on the processors {cpus:?}: {error}")]
    Cpus {
        /// The processors.
        cpus: Vec<u32>,
        /// What the kernel said.
        error: String,
    },
    /// The processes could not be looked at.
    #[error("cannot look at the job's processes: {error}")]
    Blind {
        /// What the kernel said.
        error: String,
    },
    /// The daemon that launched, or another that looked, has declared that the attempt never ran.
    #[error("the attempt was given up before its shim began")]
    Void,
    /// The attempt has a shim, or had one.
    #[error("the attempt has had a shim already")]
    Taken,
    /// The shim could not make what it needs in the folder.
    #[error("the shim cannot begin: {error}")]
    Begin {
        /// What it was about.
        error: String,
    },
}

impl Refusal {
    pub(crate) fn cpus(cpus: &[u32], error: &dyn ToString) -> Refusal {
        Refusal::Cpus { cpus: cpus.to_owned(), error: error.to_string() }
    }

    pub(crate) fn blind(error: &std::io::Error) -> Refusal {
        Refusal::Blind { error: error.to_string() }
    }

    pub(crate) fn check(cpus: &[u32]) -> Result<(), Refusal> {
        crate::order::check_cpus(cpus).map_err(|error| Refusal::cpus(cpus, &error))
    }
}

/// How a job stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// What it does.
    pub phase: Phase,
    /// Whether its main process is of the idle class. After [`Told::Critical`], `true` says that the kernel did not let it
    /// come back ([`Abilities::leaves_idle`](crate::Abilities)).
    pub idle: bool,
    /// The processors on which it may run.
    pub cpus: Vec<u32>,
    /// The end of its window, if it has begun.
    pub end: Option<BootTime>,
    /// Its window, if that has not begun and is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
}

/// What a job does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Its command is not running yet.
    Starting,
    /// It runs.
    Running,
    /// It was told to stop, and not all of it has.
    Stopping,
    /// All of it has stopped.
    Stopped,
    /// It is being ended; without a cause, its main process has gone, and what is left of it goes too.
    Ending(Option<Cause>),
    /// It has ended, and its end cannot be recorded (a full disk); the shim goes on trying.
    Ended(Box<End>),
}

/// A numbered [`Told`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Message {
    pub(crate) number: u64,
    pub(crate) told: Told,
}

/// What a shim says to the one that launched it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FirstWord {
    /// The attempt is its own.
    Begun,
    Refused(Refusal),
}

/// What a shim answers to the message of that number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The number of the message ([`Shim::send`](crate::Shim::send)).
    pub number: u64,
    /// The answer.
    pub reply: Reply,
}
