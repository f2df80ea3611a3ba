//! The default sockets, on which the daemon listens and where clients look for it.

use std::env;
use std::path::{Path, PathBuf};

/// The socket of a daemon of root.
pub const MACHINE: &str = "/run/miserly/socket";

/// Returns the socket of a user in the runtime folder, if there is such a folder.
pub fn in_runtime_folder() -> Option<PathBuf> {
    Some(folder("XDG_RUNTIME_DIR")?.join("miserly/socket"))
}

/// Returns the folder under /tmp for the socket of a user without a runtime folder. Its owner has
/// to be checked, because any user can create it.
pub fn temporary_folder(uid: u32) -> PathBuf {
    Path::new("/tmp").join(format!("miserly-{uid}"))
}

/// Returns the folder in a variable. A relative path is ignored, as the XDG standard requires.
pub fn folder(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
