//! The socket of the daemon.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
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

/// Returns the socket of the daemon.
///
/// The first of these counts:
/// 1. the one `given`
/// 2. that of `MISERLY_SOCKET`
/// 3. the existing one of the user's own daemon
/// 4. the existing one of the machine
/// 5. the path for the user's own daemon
///
/// The user's own is `$XDG_RUNTIME_DIR/miserly/socket`. Without that variable it is
/// `/tmp/miserly-UID/socket`.
///
/// # Errors
/// If the folder in `/tmp` belongs to another user.
pub fn find(given: Option<&Path>) -> Result<PathBuf, NoSocket> {
    if let Some(named) = given.map(Path::to_owned).or_else(named_socket) {
        return Ok(named);
    }
    let own = own()?;
    let machine = Path::new(MACHINE);
    Ok(if !own.exists() && machine.exists() { machine.to_owned() } else { own })
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
