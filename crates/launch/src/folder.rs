//! The folder of an attempt and the meaning of its files.
//!
//! | file | written | meaning |
//! |---|---|---|
//! | `spec.json` | by the launcher, before the shim exists | specification of the attempt |
//! | `void` | the specification, renamed under the lock | never ran and never will |
//! | `lock` | locked by the shim, and by the runner of a prolog or epilog, as long as it lives | one of them exists |
//! | `shim.json` | by the shim once it is reachable at `ctl` | identity of the shim |
//! | `relay` | by the program that becomes the command | socket of the relay of an interactive job |
//! | `started.json` | by the shim, durable, before the prolog and the command may run | one of them may have run |
//! | `end.json` | by the shim, when no process is left, also of the epilog | how the attempt ended |
//!
//! No other process sees a partial record, whichever process is killed. Flushes matter only when the power fails, and no
//! process survives that:
//!
//! - Nothing is flushed before the start. A folder without a durable start never ran, whatever is left of it.
//! - The start is flushed with the names of its file and of the folder, so an attempt that may have run is never taken for one
//!   that has not.
//! - The content of the end is flushed before its name exists, so the end is complete or missing. A connected daemon commits the
//!   end at once, and without one its name is flushed, too. If the power fails before either, the attempt is lost by the
//!   reboot, as if the power had failed before the end.
//!
//! A folder belongs to its owner alone, unless the folder above it is open to a group (mode 2750): then that group can read
//! the records and connect to the socket, and can change nothing. So a daemon without rights follows attempts of root.
//!
//! > **Architecture invariant:** only the holder of the lock decides about an attempt that has
//! > neither `started.json` nor `void`. A shim may then start the command; any other process may
//! > declare the attempt void. A command therefore runs at most once, whichever process is killed
//! > and at any time.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::boot::StoredInstant;
use crate::end::AttemptEnd;
use crate::fault::FaultPoint;
use crate::identity::Identity;
use crate::shortage::LaunchStep;
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
const RELAY: &str = "relay";
/// Preallocated files into which the start and the end are written.
const START_TEMPORARY: &str = "started.preallocated";
const END_TEMPORARY: &str = "end.preallocated";
const RECORD_BYTES: u64 = 8192;

/// The bits of a folder that is open to a group: new files have that group, and it may read and enter the folder.
const GROUP_READS: u32 = 0o2050;
/// Modes of a folder, its records and its socket that are open to a group.
const GROUP_FOLDER: u32 = 0o2750;
const GROUP_RECORD: u32 = 0o640;
const GROUP_SOCKET: u32 = 0o660;

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
    /// Start of the process, by the clock of the boot in `main`.
    pub(crate) at: BootTime,
    /// Folder of the attempt's control group, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<PathBuf>,
    /// Time limit of the epilog, if the queue has one. The attempt ends so much later than the last process of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epilog: Option<Duration>,
}

impl StartRecord {
    /// Returns the start of the process.
    pub fn instant(&self) -> StoredInstant {
        StoredInstant::new(self.at, self.main.boot_id.clone())
    }
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
    /// Whether the group of the folder can read its records.
    group_reads: bool,
}

/// What is on disk when a record is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flush {
    Nothing,
    /// The content. The name follows, and never precedes it.
    Content,
    /// The content, its name and the name of the folder.
    Folder,
}

/// The lock of an attempt. Dropping it and all its descriptors, or the exit of their processes, releases it.
#[derive(Debug)]
pub(crate) struct AttemptLock {
    fd: OwnedFd,
}

impl AttemptLock {
    /// Returns a descriptor for a child, which holds the lock, too.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.fd.try_clone()
    }
}

impl Folder {
    /// Creates the folder. It is open to the group to which the folder above it is open, if any.
    pub(crate) fn create(path: &Path) -> Result<Folder, RecordError> {
        let made = LaunchStep::CreateFolder
            .pass(path)
            .and_then(|()| FaultPoint::Folder.pass())
            .and_then(|()| DirBuilder::new().mode(0o700).create(path));
        let made = made.and_then(|()| open_to_group(path));
        made.map_err(|error| io_error("create", path, error))?;
        Folder::open(path)
    }

    pub(crate) fn open(path: &Path) -> Result<Folder, RecordError> {
        let open = || {
            let (path, fd) = (fs::canonicalize(path)?, File::open(path)?);
            let group_reads = group_reads(&fd.metadata()?);
            Ok(Folder { path, fd, group_reads })
        };
        open().map_err(|error| io_error("open", path, error))
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
        read(&self.file(name))
    }

    /// Reads the end of the attempt, or returns `None` if it does not exist.
    pub(crate) fn read_end(&self) -> Result<Option<AttemptEnd>, RecordError> {
        read_end(&self.path)
    }

    /// Returns whether a file exists.
    pub(crate) fn has(&self, name: &str) -> Result<bool, RecordError> {
        let path = self.file(name);
        path.try_exists().map_err(|error| io_error("look for", &path, error))
    }

    /// Writes a record atomically. It is durable once the start is.
    pub(crate) fn write<T: Serialize>(&self, name: &str, record: &T) -> Result<(), RecordError> {
        self.write_from(name, &format!("{name}.new"), record, Flush::Nothing)
    }

    /// Preallocates the files for the start and the end, so that a full disk does not prevent their recording.
    pub(crate) fn preallocate(&self) -> Result<(), RecordError> {
        self.preallocate_file(START_TEMPORARY)?;
        self.preallocate_file(END_TEMPORARY)
    }

    fn preallocate_file(&self, name: &str) -> Result<(), RecordError> {
        let path = self.file(name);
        let allocate = || {
            FaultPoint::Room.pass()?;
            let file = private().create_new(true).open(&path)?;
            match fallocate(&file, FallocateFlags::KEEP_SIZE, 0, RECORD_BYTES) {
                // Without preallocation in this file system, it is written like any other record.
                Err(Errno::OPNOTSUPP) => Ok(()),
                other => Ok(other?),
            }
        };
        allocate().map_err(|error| io_error("make room in", &path, error))
    }

    /// Writes the start durably into the preallocated file.
    pub(crate) fn write_start(&self, started: &StartRecord) -> Result<(), RecordError> {
        self.write_from(STARTED, START_TEMPORARY, started, Flush::Folder)
    }

    /// Writes the end into the preallocated file. Its name is durable unless a daemon commits the end.
    pub(crate) fn write_end<T: Serialize>(&self, end: &T, has_daemon: bool) -> Result<(), RecordError> {
        let flush = if has_daemon { Flush::Content } else { Flush::Folder };
        self.write_from(END, END_TEMPORARY, end, flush)
    }

    /// Writes a record over the content of the file `temporary` and renames it.
    fn write_from<T: Serialize>(
        &self,
        name: &str,
        temporary: &str,
        record: &T,
        flush: Flush,
    ) -> Result<(), RecordError> {
        let (from, to) = (self.file(temporary), self.file(name));
        let write = || {
            self.pass_step(name)?;
            let text = serde_json::to_vec(record)?;
            let mut file = private().create(true).open(&from)?;
            FaultPoint::of_record(name).pass()?;
            if self.group_reads {
                file.set_permissions(Permissions::from_mode(GROUP_RECORD))?;
            }
            file.write_all(&text)?;
            let length = text.len() as u64;
            // An earlier try may have left more.
            if file.metadata()?.len() > length {
                file.set_len(length)?;
            }
            if flush != Flush::Nothing {
                file.sync_data()?;
            }
            fs::rename(&from, &to)?;
            if flush == Flush::Folder {
                self.fd.sync_all()?;
                self.path.parent().map_or(Ok(()), |above| File::open(above)?.sync_all())?;
            }
            FaultPoint::RecordFlush.pass()
        };
        write().map_err(|error| io_error("write", &to, error))
    }

    /// Passes the step of a launch that writes a record.
    fn pass_step(&self, name: &str) -> io::Result<()> {
        match name {
            SPEC => LaunchStep::WriteSpec.pass(&self.path),
            SHIM => LaunchStep::WriteShim.pass(&self.path),
            STARTED => LaunchStep::WriteStarted.pass(&self.path),
            _ => Ok(()),
        }
    }

    /// Writes an executable script file and returns its path.
    pub(crate) fn write_script(&self, text: &str) -> io::Result<PathBuf> {
        LaunchStep::WriteScript.pass(&self.path)?;
        let path = self.file(SCRIPT);
        FaultPoint::Script.pass()?;
        private().mode(0o700).create_new(true).open(&path)?.write_all(text.as_bytes())?;
        Ok(path)
    }

    /// Creates the file of the lock, without taking it.
    pub(crate) fn create_lock(&self) -> Result<(), RecordError> {
        self.lock_file().map(drop)
    }

    fn lock_file(&self) -> Result<File, RecordError> {
        let path = self.file(LOCK);
        private().create(true).open(&path).map_err(|error| io_error("open", &path, error))
    }

    /// Takes the lock, or returns `None` if another process holds it.
    ///
    /// A program that another thread of this process starts at the same time holds it, too, until it is executed.
    pub(crate) fn lock(&self) -> Result<Option<AttemptLock>, RecordError> {
        let (path, file) = (self.file(LOCK), self.lock_file()?);
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(AttemptLock { fd: file.into() })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(io_error("lock", &path, error.into())),
        }
    }

    /// Marks the attempt as void although its start may be recorded. Needs no disk space.
    ///
    /// Only its shim calls this, which has not permitted the command to run.
    pub(crate) fn void_start(&self, lock: &AttemptLock) -> Result<(), RecordError> {
        let path = self.file(STARTED);
        match fs::remove_file(&path).and_then(|()| self.fd.sync_all()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("remove", &path, error)),
            _ => self.void(lock),
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
        let listener = UnixListener::bind(self.socket(CTL))?;
        self.open_socket_to_group(CTL)?;
        Ok(listener)
    }

    /// Returns the socket of the relay.
    pub(crate) fn relay_socket(&self) -> io::Result<OwnedFd> {
        let socket = UnixDatagram::bind(self.socket(RELAY))?;
        self.open_socket_to_group(RELAY)?;
        Ok(socket.into())
    }

    /// Connects to the socket of the relay.
    pub(crate) fn connect_relay(&self) -> io::Result<OwnedFd> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(self.socket(RELAY))?;
        Ok(socket.into())
    }

    fn open_socket_to_group(&self, name: &str) -> io::Result<()> {
        if self.group_reads {
            fs::set_permissions(self.socket(name), Permissions::from_mode(GROUP_SOCKET))?;
        }
        Ok(())
    }

    /// Connects to the shim. Does not wait if too many others do.
    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(self.socket(CTL))?)?;
        Ok(UnixStream::from(socket))
    }

    /// Returns a path of a socket that never exceeds the 108 bytes of an address.
    fn socket(&self, name: &str) -> PathBuf {
        format!("/proc/self/fd/{}/{name}", self.fd.as_raw_fd()).into()
    }

    /// Opens the log of the shim, for errors that it cannot send to a daemon.
    pub(crate) fn log(&self) -> io::Result<File> {
        private().append(true).create(true).open(self.file(LOG))
    }
}

/// Reads a record, or returns `None` if it does not exist.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, RecordError> {
    match fs::read(path) {
        Ok(text) => match serde_json::from_slice(&text) {
            Ok(record) => Ok(Some(record)),
            Err(error) => Err(RecordError::Damaged { path: path.to_owned(), error }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("read", path, error)),
    }
}

/// Reads the end of the attempt in a folder, or returns `None` if it does not exist.
///
/// A record of an earlier version does not name its boot. It is that of the shim, which has outlived none.
pub(crate) fn read_end(dir: &Path) -> Result<Option<AttemptEnd>, RecordError> {
    let Some(end) = read::<AttemptEnd>(&dir.join(END))? else { return Ok(None) };
    if end.at.parts().1.is_some() {
        return Ok(Some(end));
    }
    let shim = read::<Identity>(&dir.join(SHIM)).ok().flatten();
    let at = end.at.or_boot(shim.map(|shim| shim.boot_id));
    Ok(Some(AttemptEnd { at, ..end }))
}

/// Opens a new folder to the group to which the folder above it is open.
fn open_to_group(path: &Path) -> io::Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    if group_reads(&fs::metadata(parent)?) {
        fs::set_permissions(path, Permissions::from_mode(GROUP_FOLDER))?;
    }
    Ok(())
}

fn group_reads(folder: &Metadata) -> bool {
    folder.mode() & GROUP_READS == GROUP_READS
}

impl FaultPoint {
    fn of_record(name: &str) -> FaultPoint {
        match name {
            STARTED => FaultPoint::Start,
            END => FaultPoint::End,
            _ => FaultPoint::Record,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn an_attempt_is_open_to_the_group_of_the_folder_above_only() {
        for (above, folder_mode, record, socket) in
            [(0o755, 0o700, 0o600, None), (0o2750, GROUP_FOLDER, GROUP_RECORD, Some(GROUP_SOCKET))]
        {
            let home = tempfile::tempdir().unwrap();
            fs::set_permissions(home.path(), Permissions::from_mode(above)).unwrap();
            let folder = Folder::create(&home.path().join("1.1")).unwrap();
            folder.preallocate().unwrap();
            folder.write(SPEC, &1).unwrap();
            folder.write_end(&2, true).unwrap();
            drop(folder.lock().unwrap());
            let _listener = (folder.listen().unwrap(), folder.relay_socket().unwrap());
            assert_eq!(mode(folder.path()), folder_mode);
            assert_eq!([SPEC, END, LOCK].map(|name| mode(&folder.file(name))), [record, record, 0o600]);
            if let Some(socket) = socket {
                assert_eq!([CTL, RELAY].map(|name| mode(&folder.file(name))), [socket; 2]);
            }
        }
    }
}
