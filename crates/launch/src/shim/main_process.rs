//! The main process of a job, from the preparing program to its exit.

use miserly_attempt::{BootTime, Exit, ProcessUsage, StartFailure};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::queue_programs::QueueProgramRuns;
use super::{copy, exec};
use crate::clock::MachineClock as _;
use crate::connection::Connection;
use crate::shortage::{LaunchStep, is_shortage};
use crate::sys;

/// A message of the preparing program. A closed connection means that it became the command.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum SetupMessage {
    /// It takes a step with the rights of the job's user. The job has this failure if its window ends before the next message.
    Doing(StartFailure),
    /// It leads its session, has what it needs, and waits.
    Here,
    /// It cannot become the command.
    Failed(SetupFailure),
}

/// A reason for which the command is not started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum SetupFailure {
    /// The machine lacks a resource now. The attempt never ran, and can be launched again.
    Shortage(String),
    /// Another attempt would fail in the same way.
    Final(StartFailure),
}

impl SetupFailure {
    pub(super) fn new(failure: StartFailure, is_shortage: bool) -> SetupFailure {
        if is_shortage { SetupFailure::Shortage(failure.to_string()) } else { SetupFailure::Final(failure) }
    }

    /// Returns the failure that an error of the system is.
    pub(super) fn from_error(failure: StartFailure, error: &io::Error) -> SetupFailure {
        SetupFailure::new(failure, is_shortage(error))
    }
}

impl From<StartFailure> for SetupFailure {
    fn from(failure: StartFailure) -> SetupFailure {
        SetupFailure::Final(failure)
    }
}

/// Permission to execute the command, sent when the start record is durable.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Permission;

/// The steps of the preparing program with the rights of the job's user.
struct UserPart {
    begun: BootTime,
    /// The same instant of a clock that does not count suspended time.
    begun_awake: Instant,
    /// Failure of the job if the present step does not end.
    failure: StartFailure,
}

/// The main process.
pub(super) struct MainProcess {
    pub(super) pid: u32,
    /// Connection, until the program has become the command.
    pub(super) connection: Option<Connection>,
    /// Begin and present step of the user's part of the start.
    user_part: Option<UserPart>,
    /// Whether permission was sent.
    pub(super) is_permitted: bool,
    pub(super) failure: Option<SetupFailure>,
    /// Whether the command was not started for a shortage of the machine.
    pub(super) is_short: bool,
    pub(super) exit: Option<Exit>,
    /// What the reaped processes used.
    pub(super) usage: ProcessUsage,
}

impl MainProcess {
    /// Begins the preparing program.
    pub(super) fn start(dir: &Path) -> io::Result<MainProcess> {
        LaunchStep::SpawnCommand.pass(dir)?;
        let (ours, theirs) = UnixStream::pair()?;
        let pid = copy(dir, Some(&OwnedFd::from(theirs)), exec::become_command)?;
        let connection = Some(Connection::new(ours)?);
        Ok(MainProcess {
            pid,
            connection,
            user_part: None,
            is_permitted: false,
            failure: None,
            is_short: false,
            exit: None,
            usage: ProcessUsage::default(),
        })
    }

    /// Returns the next message, or `None` if there is none.
    pub(super) fn next_message(&mut self) -> Option<SetupMessage> {
        let received = self.connection.as_mut()?.receive();
        if received.is_err() {
            self.connection = None;
        }
        received.ok().flatten()
    }

    /// Records the step that the preparing program takes with the rights of the job's user.
    pub(super) fn note_step(&mut self, failure: StartFailure) {
        match &mut self.user_part {
            Some(part) => part.failure = failure,
            None => {
                self.user_part = Some(UserPart { begun: BootTime::now(), begun_awake: now_awake(), failure });
            }
        }
    }

    /// Returns the begin of the user's part of the start. The machine had done its part by then.
    pub(super) fn begin_of_user_part(&self) -> Option<BootTime> {
        self.user_part.as_ref().map(|part| part.begun)
    }

    /// Returns the failure of a job whose window ended in the user's part of its start.
    ///
    /// `None` if that part had less than half of the rest of the window, because the machine slept or the window is shorter than
    /// a launch. So it is if nothing was left of the window at its begin.
    pub(super) fn blocked_by_user(&self, end: BootTime) -> Option<StartFailure> {
        let part = self.user_part.as_ref().filter(|_| !self.is_permitted)?;
        let (had, rest) = (part.begun_awake.elapsed(), end.since(part.begun));
        (!rest.is_zero() && had >= rest / 2).then(|| part.failure.clone())
    }

    /// Reaps all exited children, also those that run `programs`; `true` if children are left.
    ///
    /// # Errors
    /// None that the kernel is documented to return.
    pub(super) fn reap(&mut self, programs: &mut QueueProgramRuns) -> io::Result<bool> {
        loop {
            match sys::reap() {
                Ok(Some(reaped)) if programs.take_exit(reaped.pid) => {}
                Ok(Some(reaped)) => {
                    self.usage.add(reaped.usage);
                    if reaped.pid == self.pid {
                        self.exited(reaped.status);
                    }
                }
                Ok(None) => return Ok(true),
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::INTR) => {}
                    Some(Errno::CHILD) => return Ok(false),
                    _ => return Err(error),
                },
            }
        }
    }

    fn exited(&mut self, status: i32) {
        while let Some(message) = self.next_message() {
            if let SetupMessage::Failed(failure) = message {
                self.failure = Some(failure);
            }
        }
        self.connection = None;
        self.exit = Some(match self.failure.take() {
            Some(SetupFailure::Final(failure)) => Exit::Failed(failure),
            Some(SetupFailure::Shortage(_)) => {
                self.is_short = !self.is_permitted;
                Exit::Failed(StartFailure::Ended)
            }
            None if !self.is_permitted => Exit::Failed(StartFailure::Ended),
            None => exit(status),
        });
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the clock that does not count suspended time; no policy reads it"
)]
fn now_awake() -> Instant {
    Instant::now()
}

/// Returns the exit that a status of `wait` stands for.
fn exit(status: i32) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit::Signal { signal: libc::WTERMSIG(status), core: libc::WCOREDUMP(status) }
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    }
}
