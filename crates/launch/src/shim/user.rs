//! The rights of a command: those of its user, and none of the shim's.
//!
//! The program that becomes the command is a process of its own with one thread. It gives up root's rights before it opens
//! anything that the user chose. Until it executes the command, the kernel lets no process of the user trace it.

use miserly_attempt::JobUser;
use std::ffi::OsString;
use std::fs;
use std::io;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::{Gid, Signal, Uid, getgid, getuid, set_parent_process_death_signal};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use crate::sys;
use crate::sys::pam::Pam;

/// Gives up all rights but those of the user, for good. Returns the variables that modules of PAM set.
///
/// # Errors
/// The first step that failed. The caller must not go on.
pub(super) fn become_user(user: &JobUser) -> io::Result<Vec<(OsString, OsString)>> {
    // Only an unset number can be set, and a kernel without audit has none.
    let _ = fs::write("/proc/self/loginuid", user.uid.to_string());
    if user.no_new_privileges {
        sys::empty_bounding_set()?;
    }
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    let groups: Vec<Gid> = user.groups.iter().map(|group| Gid::from_raw(*group)).collect();
    set_thread_groups(&groups)?;
    set_thread_res_gid(gid, gid, gid)?;
    // With root's rights, because modules set limits and add groups.
    let variables =
        user.pam.as_ref().map_or(Ok(vec![]), |service| Pam::open(service)?.open_session(&user.name))?;
    set_thread_res_uid(uid, uid, uid)?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    // Kernels before 4.3 have no such set.
    let _ = clear_ambient_capability_set();
    check_rights(uid, gid)?;
    if user.no_new_privileges {
        set_no_new_privs(true)?;
    }
    // The change of the user has cleared it.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // A kernel without keys has none to share.
    let _ = sys::join_new_session_keyring();
    Ok(variables)
}

/// Checks that the rights are gone, and cannot be taken back.
fn check_rights(uid: Uid, gid: Gid) -> io::Result<()> {
    let is_user = getuid() == uid && getgid() == gid;
    let returns = set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).is_ok();
    if is_user && !returns { Ok(()) } else { Err(io::Error::other("root's rights are not gone")) }
}

/// Returns the path of a script in memory, which stays open in the command.
///
/// The user cannot search the folder of the attempt, which may also forbid to execute files.
pub(super) fn script_in_memory(text: &str) -> io::Result<std::path::PathBuf> {
    use std::io::Write as _;
    use std::os::fd::{AsRawFd as _, IntoRawFd as _};
    let executable = MemfdFlags::EXEC;
    let fd = match memfd_create("script", executable) {
        // Kernels before 6.3 do not know the flag, and all their files can be executed.
        Err(Errno::INVAL) => memfd_create("script", MemfdFlags::empty()),
        other => other,
    }?;
    let mut file = fs::File::from(fd);
    file.write_all(text.as_bytes())?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // The interpreter opens it by this path.
    let _ = file.into_raw_fd();
    Ok(path.into())
}
