//! Where the daemon is.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// The socket of a daemon for the whole machine.
const MACHINE: &str = "/run/miserly/socket";

/// A place where a daemon would be, and cannot be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: the folder is user {uid}'s, not yours, so nothing in it can be trusted; set MISERLY_SOCKET", .folder.display())]
pub struct NoSocket {
    /// The folder.
    pub folder: PathBuf,
    /// Whose it is.
    pub uid: u32,
}

/// The socket to ask on: the one `given`, else that of `MISERLY_SOCKET`, else the user's own daemon's if it is there, else the
/// machine's if it is there, else where the user's own would be.
///
/// The user's own is `$XDG_RUNTIME_DIR/miserly/socket`; without that variable, `/tmp/miserly-UID/socket`.
///
/// # Errors
/// If the folder in `/tmp` is somebody else's.
pub fn find(given: Option<&Path>) -> Result<PathBuf, NoSocket> {
    if let Some(named) = given.map(Path::to_owned).or_else(named_socket) {
        return Ok(named);
    }
    let own = own()?;
    let machine = Path::new(MACHINE);
    Ok(if !own.exists() && machine.exists() { machine.to_owned() } else { own })
}

/// The socket that `MISERLY_SOCKET` names, if it names one.
pub fn named_socket() -> Option<PathBuf> {
    set("MISERLY_SOCKET")
}

/// Where the user's own daemon listens.
fn own() -> Result<PathBuf, NoSocket> {
    if let Some(folder) = set("XDG_RUNTIME_DIR") {
        return Ok(folder.join("miserly/socket"));
    }
    let uid = geteuid().as_raw();
    let folder = PathBuf::from(format!("/tmp/miserly-{uid}"));
    match fs::symlink_metadata(&folder) {
        // Anybody could have made it, and wait there for what we submit.
        Ok(found) if found.uid() != uid || !found.is_dir() => Err(NoSocket { folder, uid: found.uid() }),
        _ => Ok(folder.join("socket")),
    }
}

fn set(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}
