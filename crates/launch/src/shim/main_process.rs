//! The main process of a job, from the preparing program to its exit.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::queue_programs::QueueProgramRuns;
use super::{COMMAND, call};
use crate::connection::Connection;
use crate::end::{Exit, ProcessUsage, StartFailure};
use crate::shortage::{LaunchStep, is_shortage};
use crate::sys;

/// A message of the preparing program. A closed connection means that it became the command.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum SetupMessage {
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
    pub(super) fn of(failure: StartFailure, error: &io::Error) -> SetupFailure {
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

/// The main process.
pub(super) struct MainProcess {
    pub(super) pid: u32,
    /// Connection, until the program has become the command.
    pub(super) connection: Option<Connection>,
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
    /// Spawns the preparing program.
    pub(super) fn start(dir: &Path) -> io::Result<MainProcess> {
        LaunchStep::SpawnCommand.pass(dir)?;
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = call(dir, COMMAND);
        let child = command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).spawn()?;
        let connection = Some(Connection::new(ours)?);
        Ok(MainProcess {
            pid: child.id(),
            connection,
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

/// Returns the exit that a status of `wait` stands for.
fn exit(status: i32) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit::Signal { signal: libc::WTERMSIG(status), core: libc::WCOREDUMP(status) }
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    }
}
