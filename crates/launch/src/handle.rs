//! The daemon's handle of a shim.

use miserly_attempt::{
    AttemptEnd, BootTime, CommandError, Commands, ConnectedShim, Hello, Identity, KillResult, REPLY_TIMEOUT,
    RecordError, ReplyMessage, ShimCommand, ShimReply, StartRecord, files,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::clock::MachineClock as _;
use crate::connection::Connection;
use crate::folder::{self, Folder};
use crate::identity;
use crate::procfs::Stat;
use crate::session::JobSession;
use crate::wait;

/// A connected shim that was alive when the handle was created.
///
/// The open connection represents the daemon to the shim. Dropping the handle starts
/// [`AttemptSpec::orphan_resume_delay`](crate::AttemptSpec::orphan_resume_delay).
///
/// A handle has two descriptors. The connection carries the commands. The pidfd reports the exit of
/// a shim whose connection is broken or taken by another process, and its signals reach no process
/// that reuses the number.
#[derive(Debug)]
pub struct Shim {
    dir: PathBuf,
    shim: ConnectedShim<OwnedFd, Connection>,
}

impl Shim {
    pub(crate) fn new(dir: &Path, shim: ConnectedShim<OwnedFd, Connection>) -> Shim {
        Shim { dir: dir.to_owned(), shim }
    }

    /// Returns what another process needs for a handle of the same shim: a description, the connection and the pidfd.
    ///
    /// The shim does not notice.
    pub fn into_parts(self) -> (ShimParts, OwnedFd, OwnedFd) {
        let ConnectedShim { identity, process, commands } = self.shim;
        let (connection, last) = commands.into_parts();
        (ShimParts { identity, last }, connection.into_fd(), process)
    }

    /// Creates the handle of a shim from the parts of another process's handle. `dir` is the folder of the attempt.
    ///
    /// # Errors
    /// The connection cannot be used.
    pub fn from_parts(dir: &Path, parts: ShimParts, connection: OwnedFd, pidfd: OwnedFd) -> io::Result<Shim> {
        let ShimParts { identity, last } = parts;
        let commands = Commands::new(Connection::new(connection.into())?, last);
        Ok(Shim::new(dir, ConnectedShim { identity, process: pidfd, commands }))
    }

    /// Returns a descriptor that becomes readable when the shim exits. Read [`Shim::end`] then.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.shim.process.as_fd()
    }

    /// Returns the connection, which is readable when a reply has arrived or the shim has closed it.
    pub fn connection(&self) -> BorrowedFd<'_> {
        self.shim.commands.connection().as_fd()
    }

    /// Connects again after the connection was lost.
    ///
    /// # Errors
    /// The shim has exited, or its queue of connections is full.
    pub fn reconnect(&mut self) -> io::Result<()> {
        let folder = Folder::open(&self.dir).map_err(io::Error::other)?;
        self.shim.commands.reconnect(Connection::new(folder.connect()?)?);
        Ok(())
    }

    /// Returns the description of the shim, once it has replied.
    pub fn hello(&self) -> Option<&Hello> {
        self.shim.commands.hello()
    }

    /// Returns whether the shim is stopped, by a signal or by a debugger.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn is_stopped(&self) -> io::Result<bool> {
        let stat = Stat::from_pid(self.identity().pid)?;
        Ok(stat.is_some_and(|stat| stat.start_time == self.identity().start_time && stat.is_suspended()))
    }

    /// Sends `SIGCONT` to the shim.
    ///
    /// # Errors
    /// The kernel refuses the signal. An exited shim is no error.
    pub fn wake(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Kills the shim. The caller has proved with [`AttemptProcesses::kill_job`] that no process of the job is
    /// left.
    ///
    /// # Errors
    /// The kernel refuses the signal. An exited shim is no error.
    pub fn kill(&self) -> io::Result<()> {
        self.signal(Signal::KILL)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.shim.process, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the identity of the shim process.
    pub fn identity(&self) -> &Identity {
        &self.shim.identity
    }

    /// Returns the start record of the job's main process, or `None` before it was started.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn started(&self) -> Result<Option<StartRecord>, RecordError> {
        read(&self.dir, files::STARTED)
    }

    /// Returns the end of the attempt, or `None` if none is recorded.
    ///
    /// If the shim has exited without an end, it was killed: [`find`](crate::find()) resolves the
    /// attempt.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn end(&self) -> Result<Option<AttemptEnd>, RecordError> {
        folder::read_end(&self.dir)
    }

    /// Returns the record of the start, or `None` if the command has not been permitted to run.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn start(&self) -> Result<Option<StartRecord>, RecordError> {
        read(&self.dir, files::STARTED)
    }

    /// Sends a command and waits for its reply, at most [`REPLY_TIMEOUT`].
    ///
    /// # Errors
    /// [`CommandError::Gone`] if the shim has exited. [`ShimCommand::Kill`] may end this way.
    pub fn request(&mut self, command: &ShimCommand) -> Result<ShimReply, CommandError> {
        self.request_until(command, BootTime::now().after(REPLY_TIMEOUT))
    }

    /// Sends a command and waits for its reply, at most until an instant.
    ///
    /// # Errors
    /// As [`Shim::request`].
    pub fn request_until(
        &mut self,
        command: &ShimCommand,
        until: BootTime,
    ) -> Result<ShimReply, CommandError> {
        let readable = |connection: &Connection| wait::readable(&[connection.as_fd()], until);
        self.shim.commands.request(command, readable)
    }

    /// Sends a command without waiting and returns its number. [`Shim::receive`] returns the reply.
    ///
    /// # Errors
    /// The shim has exited or does not read.
    pub fn send(&mut self, command: &ShimCommand) -> Result<u64, CommandError> {
        self.shim.commands.send(command)
    }

    /// Returns the next reply, or `None` if there is none yet.
    ///
    /// # Errors
    /// The shim has exited and no reply is left.
    pub fn receive(&mut self) -> Result<Option<ReplyMessage>, CommandError> {
        self.shim.commands.receive()
    }
}

/// The description of a shim for another process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShimParts {
    identity: Identity,
    /// Number of the last command.
    last: u64,
}

/// The processes of an attempt, reached by its folder alone, without a connection to its shim.
#[derive(Clone, Debug)]
pub struct AttemptProcesses {
    dir: PathBuf,
    shim: Option<Identity>,
}

impl AttemptProcesses {
    /// Returns the processes of the attempt in a folder.
    ///
    /// # Errors
    /// The record of the shim cannot be read.
    pub fn read(dir: &Path) -> Result<AttemptProcesses, RecordError> {
        Ok(AttemptProcesses { dir: dir.to_owned(), shim: read(dir, files::SHIM)? })
    }

    /// Kills every process of the job that `/proc` shows, and waits for the deaths. The shim lives on.
    ///
    /// # Errors
    /// The start record or `/proc` cannot be read.
    pub fn kill_job(&self, until: BootTime) -> io::Result<KillResult> {
        match read::<StartRecord>(&self.dir, files::STARTED).map_err(io::Error::other)? {
            Some(started) => JobSession::new(&started, &self.dir).with_shim(self.shim.as_ref()).kill(until),
            None => Ok(KillResult::All(Vec::new())),
        }
    }

    /// Sends `SIGCONT` to the shim.
    ///
    /// # Errors
    /// As [`Shim::wake`].
    pub fn wake_shim(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Kills the shim, as [`Shim::kill`] does.
    ///
    /// # Errors
    /// As [`Shim::kill`].
    pub fn kill_shim(&self) -> io::Result<()> {
        self.signal(Signal::KILL)
    }

    /// Returns whether the shim lives.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn has_shim(&self) -> io::Result<bool> {
        Ok(self.open_shim()?.is_some())
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        match self.open_shim()?.map(|pidfd| pidfd_send_signal(pidfd, signal)) {
            Some(Ok(()) | Err(Errno::SRCH)) | None => Ok(()),
            Some(Err(error)) => Err(error.into()),
        }
    }

    fn open_shim(&self) -> io::Result<Option<OwnedFd>> {
        self.shim.as_ref().map_or(Ok(None), identity::open_same)
    }
}

/// Returns the recorded end of the attempt in a folder, or `None` if there is none.
///
/// # Errors
/// The record cannot be read.
pub fn recorded_end(dir: &Path) -> Result<Option<AttemptEnd>, RecordError> {
    read(dir, files::END)
}

/// Reads a record of an attempt, or returns `None` if it does not exist.
fn read<T: DeserializeOwned>(dir: &Path, name: &str) -> Result<Option<T>, RecordError> {
    folder::read(&dir.join(name))
}
