//! A shim, as the daemon holds it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use crate::end::End;
use crate::error::TellError;
use crate::folder::{self, Folder, RecordError, Started};
use crate::identity::Identity;
use crate::line::Line;
use crate::time::BootTime;
use crate::told::{Answer, Message, Reply, Told};
use crate::wait;

/// How long a shim has for an answer, and for its beginning.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A shim that was alive when it was last looked at.
///
/// Its connection is what tells the shim that there is a daemon: dropping it says that there is none
/// ([`Order::alone`](crate::Order::alone)).
#[derive(Debug)]
pub struct Shim {
    folder: Folder,
    identity: Identity,
    pidfd: OwnedFd,
    line: Line,
    /// The number of the last message.
    last: u64,
    /// Answers that came while another was waited for.
    answers: VecDeque<Answer>,
}

impl Shim {
    /// A shim at the other end of a connection; `None` if it has gone.
    pub(crate) fn meet(folder: Folder, identity: Identity, line: Line) -> io::Result<Result<Shim, Folder>> {
        let Some(pidfd) = identity.open()? else { return Ok(Err(folder)) };
        Ok(Ok(Shim { folder, identity, pidfd, line, last: 0, answers: VecDeque::new() }))
    }

    /// A descriptor that becomes readable when the shim has gone: look at [`Shim::end`] then.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// A descriptor that becomes readable when there is something for [`Shim::receive`].
    pub fn ctl(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }

    /// Which process it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The folder of the attempt.
    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// The job's main process; `None` if none has been started yet.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn started(&self) -> Result<Option<Started>, RecordError> {
        self.folder.read(folder::STARTED)
    }

    /// How the attempt ended; `None` if it has not, or if the shim was killed: when its descriptor is readable and there is no
    /// end, [`find`](crate::find()) clears up.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn end(&self) -> Result<Option<End>, RecordError> {
        self.folder.read(folder::END)
    }

    /// Tells the shim something, and waits for the answer, [`PATIENCE`] at most.
    ///
    /// # Errors
    /// [`TellError::Gone`] when the shim is no more, which is also how the wait for [`Told::Kill`] may end.
    pub fn tell(&mut self, told: &Told) -> Result<Reply, TellError> {
        let number = self.send(told)?;
        let until = BootTime::now().after(PATIENCE);
        loop {
            while let Some(answer) = self.take()? {
                if answer.number == number {
                    return Ok(answer.reply);
                }
                self.answers.push_back(answer);
            }
            // Not the pidfd: a shim that leaves closes the connection, and what it said before can still be read.
            if !wait::readable(&[self.line.as_fd()], until).map_err(TellError::Broken)? {
                return Err(TellError::Silent);
            }
        }
    }

    /// Tells the shim something and does not wait; the number of the answer, which [`Shim::receive`] gets.
    ///
    /// # Errors
    /// If it has gone, or does not take what it was sent.
    pub fn send(&mut self, told: &Told) -> Result<u64, TellError> {
        self.last += 1;
        self.line.send(&Message { number: self.last, told: told.clone() }).map_err(tell_error)?;
        Ok(self.last)
    }

    /// The next answer to what was sent; `None` if there is none yet.
    ///
    /// # Errors
    /// If the shim has gone and has left no answer more.
    pub fn receive(&mut self) -> Result<Option<Answer>, TellError> {
        match self.answers.pop_front() {
            Some(answer) => Ok(Some(answer)),
            None => self.take(),
        }
    }

    fn take(&mut self) -> Result<Option<Answer>, TellError> {
        self.line.receive().map_err(tell_error)
    }
}

fn tell_error(error: io::Error) -> TellError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            TellError::Gone
        }
        io::ErrorKind::WouldBlock => TellError::Silent,
        _ => TellError::Broken(error),
    }
}
