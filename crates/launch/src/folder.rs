//! The folder of an attempt and the meaning of its files.
//!
//! | file | written | meaning |
//! |---|---|---|
//! | `spec.json` | by the launcher, durable, before the shim exists | specification of the attempt |
//! | `void` | the specification, renamed under the lock | never ran and never will |
//! | `lock` | locked by the shim as long as it lives | the shim exists |
//! | `shim.json` | by the shim once it is reachable at `ctl` | identity of the shim |
//! | `started.json` | by the shim, durable, before the command may run | the command may have run |
//! | `end.json` | by the shim, durable, when no process is left | how the attempt ended |
//!
//! > **Architecture invariant:** only the holder of the lock decides about an attempt that has
//! > neither `started.json` nor `void`. A shim may then start the command; any other process may
//! > declare the attempt void. A command therefore runs at most once, whichever process is killed
//! > and at any time.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::identity::Identity;
use crate::time::BootTime;

pub(crate) const SPEC: &str = "spec.json";
pub(crate) const VOID: &str = "void";
pub(crate) const SHIM: &str = "shim.json";
pub(crate) const STARTED: &str = "started.json";
pub(crate) const END: &str = "end.json";
pub(crate) const LOG: &str = "shim.log";
pub(crate) const SCRIPT: &str = "script";
const LOCK: &str = "lock";
const CTL: &str = "ctl";
/// Preallocated file into which the end is written.
const END_TEMPORARY: &str = "end.preallocated";
const END_BYTES: u64 = 4096;

/// A record of the job's main process, written before it runs the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRecord {
    /// The process, which leads the job's session.
    #[serde(flatten)]
    pub main: Identity,
    /// Session of the job.
    pub sid: u32,
    /// Autogroup of the session, which no later session of the same number shares.
    ///
    /// `None` where the kernel has no autogroups.
    pub autogroup: Option<String>,
    /// Start of the process.
    pub at: BootTime,
}

/// An error in a file of the folder.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A file cannot be read or written.
    #[error("cannot {what} {}: {error}", path.display())]
    Io {
        /// Attempted operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the kernel.
        error: io::Error,
    },
    /// The content of a file is invalid.
    #[error("{} is damaged: {error}; restore or remove the folder of the attempt", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Cause with line and column.
        error: serde_json::Error,
    },
}

/// The folder of an attempt.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    fd: File,
}

/// The lock of an attempt. Dropping it, or the exit of the process, releases it.
#[derive(Debug)]
pub(crate) struct AttemptLock {
    _fd: OwnedFd,
}

impl Folder {
    /// Creates the folder, accessible only to its owner.
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
        let open = || Ok((fs::canonicalize(path)?, File::open(path)?));
        let (path, fd) = open().map_err(|error| io_error("open", path, error))?;
        Ok(Folder { path, fd })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns whether the folder itself has been deleted.
    pub(crate) fn is_removed(&self) -> bool {
        self.fd.metadata().is_ok_and(|folder| folder.nlink() == 0)
    }

    /// Reads a record, or returns `None` if it does not exist.
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

    /// Returns whether a file exists.
    pub(crate) fn has(&self, name: &str) -> Result<bool, RecordError> {
        let path = self.file(name);
        path.try_exists().map_err(|error| io_error("look for", &path, error))
    }

    /// Writes a record atomically and durably.
    pub(crate) fn write<T: Serialize>(&self, name: &str, record: &T) -> Result<(), RecordError> {
        self.write_from(name, &format!("{name}.new"), record)
    }

    /// Preallocates the file for the end, so that a full disk does not prevent its recording.
    pub(crate) fn preallocate_end(&self) -> Result<(), RecordError> {
        let path = self.file(END_TEMPORARY);
        let allocate = || {
            let file = private().create_new(true).open(&path)?;
            match fallocate(&file, FallocateFlags::empty(), 0, END_BYTES) {
                // Without preallocation in this file system, the end is written like any other
                // record.
                Err(Errno::OPNOTSUPP) => Ok(()),
                other => Ok(other?),
            }
        };
        allocate().map_err(|error| io_error("make room in", &path, error))
    }

    /// Writes the end into the preallocated file.
    pub(crate) fn write_end<T: Serialize>(&self, end: &T) -> Result<(), RecordError> {
        self.write_from(END, END_TEMPORARY, end)
    }

    /// Writes a record over the content of the file `temporary` and renames it.
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

    /// Writes an executable script file and returns its path.
    pub(crate) fn write_script(&self, text: &str) -> io::Result<PathBuf> {
        let path = self.file(SCRIPT);
        private().mode(0o700).create_new(true).open(&path)?.write_all(text.as_bytes())?;
        Ok(path)
    }

    /// Takes the lock, or returns `None` if another process holds it.
    pub(crate) fn lock(&self) -> Result<Option<AttemptLock>, RecordError> {
        let path = self.file(LOCK);
        let file = private().create(true).open(&path).map_err(|error| io_error("open", &path, error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(AttemptLock { _fd: file.into() })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(io_error("lock", &path, error.into())),
        }
    }

    /// Marks the attempt as void.
    ///
    /// The caller holds the lock and has checked that the attempt was not started. Needs no disk
    /// space.
    pub(crate) fn void(&self, _lock: &AttemptLock) -> Result<(), RecordError> {
        match fs::rename(self.file(SPEC), self.file(VOID)) {
            // Either void already, or the specification was never written and no shim exists.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(|error| io_error("rename", &self.file(SPEC), error)),
        }
    }

    /// Listens for daemons at the socket.
    pub(crate) fn listen(&self) -> io::Result<UnixListener> {
        UnixListener::bind(self.ctl())
    }

    /// Connects to the shim. Does not wait if too many others do.
    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(self.ctl())?)?;
        Ok(UnixStream::from(socket))
    }

    /// Returns a path of the socket that never exceeds the 108 bytes of an address.
    fn ctl(&self) -> PathBuf {
        format!("/proc/self/fd/{}/{CTL}", self.fd.as_raw_fd()).into()
    }

    /// Opens the log of the shim, for errors that it cannot send to a daemon.
    pub(crate) fn log(&self) -> io::Result<File> {
        private().append(true).create(true).open(self.file(LOG))
    }
}

/// Returns options for a file that only its owner can access.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

fn io_error(what: &'static str, path: &Path, error: io::Error) -> RecordError {
    RecordError::Io { what, path: path.to_owned(), error }
}
