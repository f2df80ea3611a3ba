//! Folders that only the processes of an attempt have.

use miserly_attempt::{AttemptSpec, PrivateFolders};
use std::ffi::CString;
use std::io;
use std::path::Path;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};

use crate::sys;

/// The folders in which programs leave files that no limit of a job would reach.
const FOLDERS: [&str; 2] = ["/tmp", "/dev/shm"];

/// Gives the calling process, which becomes the command, folders and System V IPC of its own. Later mounts of the machine
/// still reach it.
///
/// # Errors
/// A call that needs rights, or a folder that does not exist.
pub(super) fn enter(folders: &PrivateFolders) -> io::Result<()> {
    sys::unshare_mounts_and_ipc()?;
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    let size = folders.size.map(|bytes| format!(",size={bytes}")).unwrap_or_default();
    let options = CString::new(format!("mode=1777{size}"))?;
    for folder in FOLDERS {
        mount("miserly", folder, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options.as_c_str())?;
    }
    Ok(())
}

/// Returns whether a path of the machine is hidden from the attempt.
pub(super) fn hides(spec: &AttemptSpec, path: &Path) -> bool {
    spec.private_folders.is_some() && FOLDERS.iter().any(|folder| path.starts_with(folder))
}
