//! The daemon's handle of a shim.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::connection::Connection;
use crate::end::AttemptEnd;
use crate::error::CommandError;
use crate::folder::{self, Folder, RecordError, StartRecord};
use crate::identity::Identity;
use crate::protocol::{CommandMessage, ReplyMessage, ShimCommand, ShimReply};
use crate::time::BootTime;
use crate::wait;

/// Time limit for a reply and for the handshake.
pub const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// A connected shim that was alive when the handle was created.
///
/// The open connection represents the daemon to the shim. Dropping the handle starts
/// [`AttemptSpec::orphan_resume_delay`](crate::AttemptSpec::orphan_resume_delay).
#[derive(Debug)]
pub struct Shim {
    folder: Folder,
    identity: Identity,
    pidfd: OwnedFd,
    connection: Connection,
    /// Number of the last command.
    last: u64,
}

impl Shim {
    /// Creates the handle, or returns the folder if the process has exited.
    pub(crate) fn from_connection(
        folder: Folder,
        identity: Identity,
        connection: Connection,
    ) -> io::Result<Result<Shim, Folder>> {
        let Some(pidfd) = identity.open()? else { return Ok(Err(folder)) };
        Ok(Ok(Shim { folder, identity, pidfd, connection, last: 0 }))
    }

    /// Returns a descriptor that becomes readable when the shim exits. Read [`Shim::end`] then.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Returns the identity of the shim process.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the start record of the job's main process, or `None` before it was started.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn started(&self) -> Result<Option<StartRecord>, RecordError> {
        self.folder.read(folder::STARTED)
    }

    /// Returns the end of the attempt, or `None` if none is recorded.
    ///
    /// If the shim has exited without an end, it was killed: [`find`](crate::find()) resolves the
    /// attempt.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn end(&self) -> Result<Option<AttemptEnd>, RecordError> {
        self.folder.read(folder::END)
    }

    /// Sends a command and waits for its reply, at most [`REPLY_TIMEOUT`].
    ///
    /// # Errors
    /// [`CommandError::Gone`] if the shim has exited. [`ShimCommand::Kill`] may end this way.
    pub fn request(&mut self, command: &ShimCommand) -> Result<ShimReply, CommandError> {
        let number = self.send(command)?;
        let until = BootTime::now().after(REPLY_TIMEOUT);
        loop {
            while let Some(answer) = self.receive()? {
                // An earlier number is the late reply to a request that was given up.
                if answer.number == number {
                    return Ok(answer.reply);
                }
            }
            // Polls the connection, not the pidfd: replies sent before the exit are still readable.
            if !wait::readable(&[self.connection.as_fd()], until).map_err(CommandError::Broken)? {
                return Err(CommandError::Silent);
            }
        }
    }

    /// Sends a command without waiting and returns its number. [`Shim::receive`] returns the reply.
    ///
    /// # Errors
    /// The shim has exited or does not read.
    pub fn send(&mut self, command: &ShimCommand) -> Result<u64, CommandError> {
        self.last += 1;
        self.connection
            .send(&CommandMessage { number: self.last, command: command.clone() })
            .map_err(command_error)?;
        Ok(self.last)
    }

    /// Returns the next reply, or `None` if there is none yet.
    ///
    /// # Errors
    /// The shim has exited and no reply is left.
    pub fn receive(&mut self) -> Result<Option<ReplyMessage>, CommandError> {
        self.connection.receive().map_err(command_error)
    }
}

fn command_error(error: io::Error) -> CommandError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            CommandError::Gone
        }
        io::ErrorKind::WouldBlock => CommandError::Silent,
        _ => CommandError::Broken(error),
    }
}
