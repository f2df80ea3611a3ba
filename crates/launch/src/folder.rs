//! The folder of an attempt, and what may be concluded from what is in it.
//!
//! | file | written | means |
//! |---|---|---|
//! | `order.json` | by the launcher, durable, before there is a shim | what to run |
//! | `void` | the order, renamed under the lock | it was never run and never will be |
//! | `lock` | locked by the shim as long as it lives | there is a shim |
//! | `shim.json` | by the shim when it can be reached at `ctl` | which process it is |
//! | `started.json` | by the shim, durable, before the command may run | it may have run |
//! | `end.json` | by the shim, durable, when no process is left | how it ended |
//!
//! > Whoever holds the lock and finds neither `started.json` nor `void` decides: a shim may then start the command, and anybody
//! > else may give the attempt up. So a command runs at most once, whatever is killed when.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::identity::Identity;
use crate::time::BootTime;

pub(crate) const ORDER: &str = "order.json";
pub(crate) const VOID: &str = "void";
pub(crate) const SHIM: &str = "shim.json";
pub(crate) const STARTED: &str = "started.json";
pub(crate) const END: &str = "end.json";
pub(crate) const LOG: &str = "shim.log";
pub(crate) const SCRIPT: &str = "script";
const LOCK: &str = "lock";
const CTL: &str = "ctl";
/// Where the end is written, made beforehand and with room for it.
const ROOM: &str = "end.room";
const ROOM_BYTES: u64 = 4096;

/// The main process of a job, from before it runs the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The process, which leads the job's session.
    #[serde(flatten)]
    pub main: Identity,
    /// The job's session.
    pub sid: u32,
    /// The kernel's group of the session's processes, which no later session of the same number has; `None` where the kernel has no such groups.
    pub autogroup: Option<String>,
    /// When it was started.
    pub at: BootTime,
}

/// A file of the folder that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It cannot be read or written.
    #[error("cannot {what} {}: {error}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// It does not say what it should.
    #[error("{} is damaged: {error}; the attempt cannot be judged without it", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and at which line and column.
        error: serde_json::Error,
    },
}

/// The folder of an attempt.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    fd: File,
}

/// What holds the lock; closing it, or dying, lets it go.
#[derive(Debug)]
pub(crate) struct Lock {
    _fd: OwnedFd,
}

impl Folder {
    /// Makes the folder, for its owner alone.
    pub(crate) fn create(path: &Path) -> Result<Folder, RecordError> {
        let made = DirBuilder::new().mode(0o700).create(path);
        made.map_err(|error| io_error("create", path, error))?;
        let folder = Folder::open(path)?;
        if let Some(parent) = folder.path.parent() {
            let synced = File::open(parent).and_then(|parent| parent.sync_all());
            synced.map_err(|error| io_error("sync", parent, error))?;
        }
        Ok(folder)
    }

    pub(crate) fn open(path: &Path) -> Result<Folder, RecordError> {
        let whole = || Ok((fs::canonicalize(path)?, File::open(path)?));
        let (path, fd) = whole().map_err(|error| io_error("open", path, error))?;
        Ok(Folder { path, fd })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether the folder itself has been removed.
    pub(crate) fn is_removed(&self) -> bool {
        self.fd.metadata().is_ok_and(|folder| folder.nlink() == 0)
    }

    /// Reads a record; `None` if it has not been written.
    pub(crate) fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, RecordError> {
        let path = self.file(name);
        match fs::read(&path) {
            Ok(text) => match serde_json::from_slice(&text) {
                Ok(record) => Ok(Some(record)),
                Err(error) => Err(RecordError::Damaged { path, error }),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_error("read", &path, error)),
        }
    }

    /// Whether a file is there.
    pub(crate) fn has(&self, name: &str) -> Result<bool, RecordError> {
        let path = self.file(name);
        path.try_exists().map_err(|error| io_error("look for", &path, error))
    }

    /// Writes a record that is whole or not there, and survives a loss of power.
    pub(crate) fn write<T: Serialize>(&self, name: &str, record: &T) -> Result<(), RecordError> {
        self.write_from(name, &format!("{name}.new"), record)
    }

    /// Makes room for the end, so that a disk that fills while the job runs does not keep it from being recorded.
    pub(crate) fn make_room(&self) -> Result<(), RecordError> {
        let path = self.file(ROOM);
        let allocate = || {
            let file = private().create_new(true).open(&path)?;
            match fallocate(&file, FallocateFlags::empty(), 0, ROOM_BYTES) {
                // A file system without such promises: the end is then written as any other record.
                Err(Errno::OPNOTSUPP) => Ok(()),
                other => Ok(other?),
            }
        };
        allocate().map_err(|error| io_error("make room in", &path, error))
    }

    /// Writes the end into the room that was made for it.
    pub(crate) fn write_end<T: Serialize>(&self, end: &T) -> Result<(), RecordError> {
        self.write_from(END, ROOM, end)
    }

    /// Writes a record into the file `temporary`, over what is in it, and gives it its name.
    fn write_from<T: Serialize>(&self, name: &str, temporary: &str, record: &T) -> Result<(), RecordError> {
        let (from, to) = (self.file(temporary), self.file(name));
        let write = || {
            let text = serde_json::to_vec(record)?;
            let mut file = private().create(true).open(&from)?;
            file.write_all(&text)?;
            file.set_len(text.len() as u64)?;
            file.sync_all()?;
            fs::rename(&from, &to)?;
            self.fd.sync_all()
        };
        write().map_err(|error| io_error("write", &to, error))
    }

    /// Writes the text of a script, to be run.
    pub(crate) fn write_script(&self, text: &str) -> io::Result<PathBuf> {
        let path = self.file(SCRIPT);
        private().mode(0o700).create_new(true).open(&path)?.write_all(text.as_bytes())?;
        Ok(path)
    }

    /// Takes the lock; `None` if another has it.
    pub(crate) fn lock(&self) -> Result<Option<Lock>, RecordError> {
        let path = self.file(LOCK);
        let file = private().create(true).open(&path).map_err(|error| io_error("open", &path, error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock { _fd: file.into() })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(io_error("lock", &path, error.into())),
        }
    }

    /// Gives the attempt up, for whoever holds its lock and has seen that it was not started. It takes no room on the disk.
    pub(crate) fn void(&self, _lock: &Lock) -> Result<(), RecordError> {
        match fs::rename(self.file(ORDER), self.file(VOID)) {
            // Void already, or the order was never written, and a shim is begun after that only.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(|error| io_error("rename", &self.file(ORDER), error)),
        }
    }

    /// Waits for daemons at the socket.
    pub(crate) fn listen(&self) -> io::Result<UnixListener> {
        UnixListener::bind(self.ctl())
    }

    /// Calls the shim.
    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(self.ctl())
    }

    /// The socket, by a path that is never too long for an address (108 bytes).
    fn ctl(&self) -> PathBuf {
        format!("/proc/self/fd/{}/{CTL}", self.fd.as_raw_fd()).into()
    }

    /// Opens the file to which the shim writes what it can tell nobody.
    pub(crate) fn log(&self) -> io::Result<File> {
        private().append(true).create(true).open(self.file(LOG))
    }
}

/// How a file is opened that is for its owner alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

fn io_error(what: &'static str, path: &Path, error: io::Error) -> RecordError {
    RecordError::Io { what, path: path.to_owned(), error }
}
