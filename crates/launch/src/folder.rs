//! The folder of an attempt on disk: [`Files`] over the file system, and the sockets.
//!
//! A folder belongs to its owner alone, unless the folder above it is open to a group (mode 2750): then that group can read
//! the records and connect to the socket, and can change nothing. So a daemon without rights follows attempts of root.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use miserly_attempt::AttemptEnd;
use miserly_attempt::files::{END, Files, Flush, LOCK, RecordError, SHIM, SPEC, STARTED, parse};
use rustix::fs::{FallocateFlags, FlockOperation, OFlags, fallocate, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::de::DeserializeOwned;

use crate::fault::FaultPoint;
use crate::shortage::LaunchStep;

pub(crate) const LOG: &str = "shim.log";
pub(crate) const SCRIPT: &str = "script";
const CTL: &str = "ctl";
const RELAY: &str = "relay";
const RECORD_BYTES: u64 = 8192;

/// The bits of a folder that is open to a group: new files have that group, and it may read and enter the folder.
const GROUP_READS: u32 = 0o2050;
/// Modes of a folder, its records and its socket that are open to a group.
const GROUP_FOLDER: u32 = 0o2750;
const GROUP_RECORD: u32 = 0o640;
const GROUP_SOCKET: u32 = 0o660;

/// The folder of an attempt.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    fd: File,
    /// Whether the group of the folder can read its records.
    group_reads: bool,
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

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes an executable script file and returns its path.
    pub(crate) fn write_script(&self, text: &str) -> io::Result<PathBuf> {
        LaunchStep::WriteScript.pass(&self.path)?;
        let path = self.file(SCRIPT);
        FaultPoint::Script.pass()?;
        private().mode(0o700).create_new(true).open(&path)?.write_all(text.as_bytes())?;
        Ok(path)
    }

    fn lock_file(&self) -> io::Result<File> {
        private().create(true).open(self.file(LOCK))
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

impl Files for Folder {
    type Lock = AttemptLock;

    fn path(&self) -> &Path {
        &self.path
    }

    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        load(&self.file(name))
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        self.file(name).try_exists()
    }

    fn store(&self, name: &str, temporary: &str, content: &[u8], flush: Flush) -> io::Result<()> {
        let (from, to) = (self.file(temporary), self.file(name));
        self.pass_step(name)?;
        let mut file = private().create(true).open(&from)?;
        FaultPoint::of_record(name).pass()?;
        if self.group_reads {
            file.set_permissions(Permissions::from_mode(GROUP_RECORD))?;
        }
        file.write_all(content)?;
        let length = content.len() as u64;
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
    }

    fn preallocate(&self, name: &str) -> io::Result<()> {
        FaultPoint::Room.pass()?;
        let file = private().create_new(true).open(self.file(name))?;
        match fallocate(&file, FallocateFlags::KEEP_SIZE, 0, RECORD_BYTES) {
            // Without preallocation in this file system, it is written like any other record.
            Err(Errno::OPNOTSUPP) => Ok(()),
            other => Ok(other?),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.file(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.file(from), self.file(to))
    }

    fn flush(&self) -> io::Result<()> {
        self.fd.sync_all()
    }

    fn make_lock(&self) -> io::Result<()> {
        self.lock_file().map(drop)
    }

    /// A program that another thread of this process starts at the same time holds the lock, too, until it is executed.
    fn take_lock(&self) -> io::Result<Option<AttemptLock>> {
        let file = self.lock_file()?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(AttemptLock { fd: file.into() })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn is_locked(&self, folder: &str) -> io::Result<bool> {
        if Path::new(folder).file_name() != Some(folder.as_ref()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let path = self.path().with_file_name(folder).join(LOCK);
        let file =
            match File::options().read(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error),
            };
        // A shared lock, which is released at once, does not disturb another reader.
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    fn is_removed(&self) -> bool {
        self.fd.metadata().is_ok_and(|folder| folder.nlink() == 0)
    }
}

/// Returns the content of a file, or `None` if it does not exist.
fn load(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Reads a record, or returns `None` if it does not exist.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, RecordError> {
    parse(path, load(path))
}

/// Reads the end of the attempt in a folder, or returns `None` if it does not exist.
pub(crate) fn read_end(dir: &Path) -> Result<Option<AttemptEnd>, RecordError> {
    let end = read::<AttemptEnd>(&dir.join(END))?;
    Ok(end.map(|end| end.or_boot_of(|| read(&dir.join(SHIM)))))
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
            folder.make_room().unwrap();
            folder.write(SPEC, &1).unwrap();
            folder.write(END, &2).unwrap();
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
