//! The main process of a job: from the program that becomes the command, to its exit.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use rustix::io::Errno;
use rustix::process::{WaitOptions, WaitStatus, wait};
use serde::{Deserialize, Serialize};

use super::{COMMAND, program};
use crate::end::{Exit, Failure};
use crate::line::Line;

/// What the program that becomes the command says on its way; that it did, the end of the conversation says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Word {
    /// It leads its session, and waits.
    Here,
    /// It cannot become the command.
    Failed(Failure),
}

/// What the shim answers once its start is on disk and it has its place.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Go;

/// The main process.
pub(super) struct MainProcess {
    pub(super) pid: u32,
    /// As long as it has not become the command.
    pub(super) line: Option<Line>,
    /// Whether it was let go.
    pub(super) gone_ahead: bool,
    pub(super) failure: Option<Failure>,
    pub(super) exit: Option<Exit>,
}

impl MainProcess {
    /// Starts the program that becomes the command.
    pub(super) fn start(dir: &Path) -> io::Result<MainProcess> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = program(dir, COMMAND);
        let child = command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).spawn()?;
        let line = Some(Line::new(ours)?);
        Ok(MainProcess { pid: child.id(), line, gone_ahead: false, failure: None, exit: None })
    }

    /// The next word of it; `None` if there is none yet, or no more.
    pub(super) fn hear(&mut self) -> Option<Word> {
        let heard = self.line.as_mut()?.receive();
        if heard.is_err() {
            self.line = None;
        }
        heard.ok().flatten()
    }

    /// Waits for all that has ended; whether there is any child left.
    ///
    /// # Errors
    /// None that the kernel is known to give.
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
        while let Some(word) = self.hear() {
            if let Word::Failed(failure) = word {
                self.failure = Some(failure);
            }
        }
        self.line = None;
        self.exit = Some(match self.failure.take() {
            Some(failure) => Exit::Failed(failure),
            None if !self.gone_ahead => Exit::Failed(Failure::Ended),
            None => exit(status),
        });
    }
}

fn exit(status: WaitStatus) -> Exit {
    /// The bit of a wait status that says that a core was dumped.
    const CORE: i32 = 0x80;
    match (status.exit_status(), status.terminating_signal()) {
        (_, Some(signal)) => Exit::Signal { signal, core: status.as_raw() & CORE != 0 },
        (code, None) => Exit::Code(code.unwrap_or(0)),
    }
}
