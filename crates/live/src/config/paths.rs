//! The default paths of state and socket.

use std::env;
use std::path::{Path, PathBuf};

use rustix::process::getuid;

/// Returns the state folder: the system's for root, else the user's own.
pub(super) fn state() -> Result<PathBuf, String> {
    if getuid().is_root() {
        return Ok("/var/lib/miserly".into());
    }
    let home = || folder("HOME").map(|home| home.join(".local/state"));
    let base = folder("XDG_STATE_HOME").or_else(home);
    base.map(|base| base.join("miserly")).ok_or_else(|| {
        "state: there is neither XDG_STATE_HOME nor HOME to put the state in; say where with `state = \"/FOLDER\"`".into()
    })
}

/// Returns the socket: in the runtime folder, else in a folder of this user under /tmp. The creator
/// of the socket has to check the owner of that folder.
pub(super) fn socket() -> PathBuf {
    if getuid().is_root() {
        return "/run/miserly/socket".into();
    }
    let own = || Path::new("/tmp").join(format!("miserly-{}", getuid().as_raw()));
    folder("XDG_RUNTIME_DIR").map_or_else(own, |runtime| runtime.join("miserly")).join("socket")
}

/// Returns the folder in a variable. A relative path is ignored, as the XDG standard requires.
fn folder(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
