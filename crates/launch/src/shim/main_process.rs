//! The main process of a job, from the preparing program to its exit.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use rustix::io::Errno;
use rustix::process::{WaitOptions, WaitStatus, wait};
use serde::{Deserialize, Serialize};

use super::{COMMAND, program};
use crate::connection::Connection;
use crate::end::{Exit, StartFailure};

/// A message of the preparing program. A closed connection means that it became the command.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum SetupMessage {
    /// It leads its session and waits.
    Here,
    /// It cannot become the command.
    Failed(StartFailure),
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
    pub(super) failure: Option<StartFailure>,
    pub(super) exit: Option<Exit>,
}

impl MainProcess {
    /// Spawns the preparing program.
    pub(super) fn start(dir: &Path) -> io::Result<MainProcess> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = program(dir, COMMAND);
        let child = command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).spawn()?;
        let connection = Some(Connection::new(ours)?);
        Ok(MainProcess { pid: child.id(), connection, is_permitted: false, failure: None, exit: None })
    }

    /// Returns the next message, or `None` if there is none.
    pub(super) fn next_message(&mut self) -> Option<SetupMessage> {
        let received = self.connection.as_mut()?.receive();
        if received.is_err() {
            self.connection = None;
        }
        received.ok().flatten()
    }

    /// Reaps all exited children; `true` if children are left.
    ///
    /// # Errors
    /// None that the kernel is documented to return.
    pub(super) fn reap(&mut self) -> io::Result<bool> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid.as_raw_pid().unsigned_abs() == self.pid => self.exited(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Ok(true),
                Err(Errno::CHILD) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn exited(&mut self, status: WaitStatus) {
        while let Some(message) = self.next_message() {
            if let SetupMessage::Failed(failure) = message {
                self.failure = Some(failure);
            }
        }
        self.connection = None;
        self.exit = Some(match self.failure.take() {
            Some(failure) => Exit::Failed(failure),
            None if !self.is_permitted => Exit::Failed(StartFailure::Ended),
            None => exit(status),
        });
    }
}

fn exit(status: WaitStatus) -> Exit {
    /// Bit of a wait status for a dumped core.
    const CORE: i32 = 0x80;
    match (status.exit_status(), status.terminating_signal()) {
        (_, Some(signal)) => Exit::Signal { signal, core: status.as_raw() & CORE != 0 },
        (code, None) => Exit::Code(code.unwrap_or(0)),
    }
}
