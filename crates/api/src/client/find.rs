//! The socket of the daemon.

use std::env;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::socket::{MACHINE, in_runtime_folder, temporary_folder};

/// A folder of a socket that belongs to another user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: the folder is user {uid}'s, not yours, so nothing in it can be trusted; set MISERLY_SOCKET", .folder.display())]
pub struct NoSocket {
    /// The folder.
    pub folder: PathBuf,
    /// The owner, by number.
    pub uid: u32,
}

/// A socket, and whether the user named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonSocket {
    /// The path.
    pub path: PathBuf,
    /// The user named it, so the daemon may be any user's. Else it has to be the user's own or root's.
    pub named: bool,
}

/// Returns the socket of the daemon.
///
/// The first of these counts:
/// 1. the one `given`
/// 2. that of `MISERLY_SOCKET`
/// 3. that of the user's own daemon, if a daemon listens on it
/// 4. the existing one of the machine
/// 5. the path for the user's own daemon
///
/// The user's own is `$XDG_RUNTIME_DIR/miserly/socket`. Without that variable it is
/// `/tmp/miserly-UID/socket`.
///
/// # Errors
/// If the folder in `/tmp` belongs to another user.
pub fn find(given: Option<&Path>) -> Result<DaemonSocket, NoSocket> {
    if let Some(path) = given.map(Path::to_owned).or_else(named_socket) {
        return Ok(DaemonSocket { path, named: true });
    }
    let own = own()?;
    Ok(DaemonSocket { path: living(own, Path::new(MACHINE)), named: false })
}

/// Returns the user's own socket if a daemon listens on it, or if the machine has none.
fn living(own: PathBuf, machine: &Path) -> PathBuf {
    let dead = || {
        let connected = UnixStream::connect(&own).map(drop);
        connected
            .is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused))
    };
    if machine.exists() && dead() { machine.to_owned() } else { own }
}

/// Returns whether the folder of a socket is this user's by root's will: only root can change the folders above it.
///
/// So a daemon can listen that was started by root and gave up its rights.
pub(super) fn is_given_by_root(socket: &Path, uid: u32) -> bool {
    let owner_and_mode = |path: &Path| {
        let found = fs::symlink_metadata(path).ok().filter(Metadata::is_dir)?;
        Some((found.uid(), found.mode()))
    };
    let mut folders = socket.ancestors().skip(1).map(owner_and_mode);
    let is_users = folders.next().flatten().is_some_and(|(owner, mode)| owner == uid && mode & 0o022 == 0);
    is_users && folders.all(|found| found.is_some_and(|(owner, mode)| owner == 0 && mode & 0o022 == 0))
}

/// Returns the socket in `MISERLY_SOCKET`, if it is set.
pub fn named_socket() -> Option<PathBuf> {
    env::var_os("MISERLY_SOCKET").filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Returns the socket of the user's own daemon.
fn own() -> Result<PathBuf, NoSocket> {
    if let Some(socket) = in_runtime_folder() {
        return Ok(socket);
    }
    let uid = geteuid().as_raw();
    let folder = temporary_folder(uid);
    match fs::symlink_metadata(&folder) {
        // Any user can create it there and wait for submissions.
        Ok(found) if found.uid() != uid || !found.is_dir() => Err(NoSocket { folder, uid: found.uid() }),
        _ => Ok(folder.join("socket")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::net::UnixListener;

    use miserly_test_support::Requirement;

    use super::*;

    #[test]
    fn only_root_gives_a_folder_to_a_daemon() {
        let other = 4321;
        // Any user can create it in the folder of all.
        let shared = tempfile::tempdir().unwrap();
        assert!(!is_given_by_root(&shared.path().join("socket"), geteuid().as_raw()));
        assert!(
            !is_given_by_root(Path::new("socket"), other) && !is_given_by_root(Path::new("/socket"), other)
        );
        if !Requirement::Root.is_met(geteuid().is_root(), "needs root, to give a folder away") {
            return;
        }
        let folder = tempfile::tempdir_in("/run").unwrap();
        let socket = folder.path().join("socket");
        assert!(!is_given_by_root(&socket, other));
        chown(folder.path(), Some(other), None).unwrap();
        assert!(is_given_by_root(&socket, other) && !is_given_by_root(&socket, other + 1));
        assert!(!is_given_by_root(&folder.path().join("more/socket"), other));
        fs::set_permissions(folder.path(), Permissions::from_mode(0o775)).unwrap();
        assert!(!is_given_by_root(&socket, other), "its group can replace the socket");
    }

    #[test]
    fn a_dead_socket_of_ones_own_does_not_hide_the_machine_s() {
        let folder = tempfile::tempdir().unwrap();
        let [own, machine] = ["own", "machine"].map(|name| folder.path().join(name));
        assert_eq!(living(own.clone(), &machine), own);
        let _machine = UnixListener::bind(&machine).unwrap();
        assert_eq!(living(own.clone(), &machine), machine);
        drop(UnixListener::bind(&own).unwrap());
        assert_eq!(living(own.clone(), &machine), machine);
        fs::remove_file(&own).unwrap();
        let _own = UnixListener::bind(&own).unwrap();
        assert_eq!(living(own.clone(), &machine), own);
    }
}
