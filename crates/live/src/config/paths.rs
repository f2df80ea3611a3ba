//! The default paths of state and socket.

use std::path::PathBuf;

use miserly_api::socket::{MACHINE, folder, in_runtime_folder, temporary_folder};
use rustix::process::getuid;

/// Returns the state folder: the system's for root, else the user's own.
pub(super) fn state(of_root: bool) -> Result<PathBuf, String> {
    if of_root {
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
pub(super) fn socket(of_root: bool) -> PathBuf {
    if of_root {
        return MACHINE.into();
    }
    in_runtime_folder().unwrap_or_else(|| temporary_folder(getuid().as_raw()).join("socket"))
}
