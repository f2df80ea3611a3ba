//! The socket: a file that cannot be reached before it has its mode, and that two daemons cannot
//! share.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;

use crate::folder::{self, FolderError, NO_LINK};

miserly_core::named_enum! {
    /// The users that may connect.
    #[derive(Default, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Access {
        /// The daemon's own user, and root.
        #[default]
        Own "own",
        /// Every user of the machine.
        Everybody "everybody",
    }
}

/// The number of tries at a socket in use, and the pause between them.
const TRIES: u32 = 50;
const BETWEEN: Duration = Duration::from_millis(10);

/// The reason why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// A daemon listens on the socket.
    #[error("{0}: a daemon runs on this socket; stop it first, or give this one another socket")]
    InUse(PathBuf),
    /// The file is not a socket.
    #[error("{0}: there is something that is no socket; remove it, or give another socket")]
    NoSocket(PathBuf),
    /// Other users could replace the socket.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A system call failed.
    #[error("cannot make the socket {path}: {error}")]
    Io {
        /// The socket, or its folder.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
}

/// A listening socket. Dropping it removes the socket.
#[derive(Debug)]
pub struct Bound {
    pub(super) listener: UnixListener,
    path: PathBuf,
    /// Held as long as the socket. The lock file stays: a lock on a removed file excludes no other
    /// process.
    _lock: File,
}

/// Listens on `path`. Replaces the socket of a dead daemon, but not that of a live one.
///
/// Creates a missing folder. Its mode is 0755 if every user has access, else 0700.
///
/// # Errors
/// [`BindError::InUse`] while a daemon listens there. The other errors if the path is unsuitable.
pub fn bind(path: &Path, access: Access) -> Result<Bound, BindError> {
    let refused = |error| BindError::Io { path: path.to_owned(), error };
    make_folder(path, access)?;
    let lock = take(path)?;
    let made = beside(path, ".new");
    let _ = fs::remove_file(&made);
    let listener = UnixListener::bind(&made).map_err(refused)?;
    let access = if access == Access::Everybody { 0o666 } else { 0o600 };
    fs::set_permissions(&made, Permissions::from_mode(access)).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    fs::rename(&made, path).map_err(refused)?;
    Ok(Bound { listener, path: path.to_owned(), _lock: lock })
}

fn make_folder(path: &Path, access: Access) -> Result<(), BindError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mode = if access == Access::Everybody { 0o755 } else { 0o700 };
    folder::open(folder, folder::Use::Socket(mode))?;
    let found = fs::metadata(folder).map_err(|error| BindError::Io { path: folder.to_owned(), error })?;
    if access == Access::Everybody && found.mode() & 0o001 == 0 {
        let (folder, mode) = (folder.display(), found.mode() & 0o7777);
        tracing::warn!(
            "other users cannot reach the socket: {folder} has mode {mode:o}; `chmod 755 {folder}` admits them"
        );
    }
    Ok(())
}

/// Returns the lock of an unused socket. The child of a killed daemon holds socket and lock for a
/// moment, between fork and exec. So this retries.
fn take(path: &Path) -> Result<File, BindError> {
    let mut tries = 0;
    loop {
        match lock(path).and_then(|lock| refuse_if_taken(path).map(|()| lock)) {
            Err(BindError::InUse(_)) if tries < TRIES => tries += 1,
            taken => return taken,
        }
        std::thread::sleep(BETWEEN);
    }
}

/// Returns the lock of the socket. The kernel releases it when the process ends.
fn lock(path: &Path) -> Result<File, BindError> {
    let name = beside(path, ".lock");
    let refused = |error| BindError::Io { path: name.clone(), error };
    let options = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(NO_LINK)
        .open(&name);
    let file = options.map_err(refused)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(BindError::InUse(path.to_owned())),
        Err(error) => Err(refused(error.into())),
    }
}

/// Rejects a path that is not a socket, or on which a daemon still listens. Such a socket may lack
/// its lock.
fn refuse_if_taken(path: &Path) -> Result<(), BindError> {
    use std::os::unix::fs::FileTypeExt;
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => Err(BindError::NoSocket(path.to_owned())),
        Ok(_) if UnixStream::connect(path).is_ok() => Err(BindError::InUse(path.to_owned())),
        _ => Ok(()),
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

impl Bound {
    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // The lock is still held, so this is not the socket of another daemon.
        let _ = fs::remove_file(&self.path);
    }
}
