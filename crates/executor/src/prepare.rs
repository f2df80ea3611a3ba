//! The folder of the attempts, which the daemon's group follows and cannot change.

use std::io;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Gid, Mode, OFlags, Uid, fchmod, fchown, fstat, mkdirat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// The name of the folder of the attempts in that of the state.
pub(crate) const ATTEMPTS: &str = "attempts";

/// Opens the folder of the state.
pub(crate) fn open_state(state: &Path) -> io::Result<OwnedFd> {
    Ok(openat(CWD, state, folder_flags(), Mode::empty())?)
}

/// Creates the folder of the attempts if it is missing, and opens it to a group. New files in it have that group.
///
/// # Errors
/// It is a link, or not this process's user owns it.
pub(crate) fn make_attempts(state: &OwnedFd, group: u32) -> io::Result<()> {
    match mkdirat(state, ATTEMPTS, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let folder = openat(state, ATTEMPTS, folder_flags(), Mode::empty())?;
    let owner = fstat(&folder)?.st_uid;
    if owner != geteuid().as_raw() {
        return Err(io::Error::other(format!("{ATTEMPTS} belongs to user {owner}, and not to root")));
    }
    fchown(&folder, Some(Uid::from_raw(owner)), Some(Gid::from_raw(group)))?;
    // After the change of the group, which removes the bit that hands the group down.
    fchmod(&folder, Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::SGID)?;
    Ok(())
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, chown, symlink};

    use miserly_test_support::Requirement;

    use super::*;

    #[test]
    fn a_link_in_place_of_the_folder_is_refused() {
        let state = tempfile::tempdir().unwrap();
        symlink("/tmp", state.path().join(ATTEMPTS)).unwrap();
        assert!(
            make_attempts(&open_state(state.path()).unwrap(), rustix::process::getgid().as_raw()).is_err()
        );
    }

    #[test]
    fn the_group_follows_the_attempts_and_cannot_change_them() {
        if !Requirement::Root.is_met(geteuid().is_root(), "needs root, to give a folder to a group") {
            return;
        }
        let state = tempfile::tempdir().unwrap();
        let (folder, opened) = (state.path().join(ATTEMPTS), open_state(state.path()).unwrap());
        for _ in 0..2 {
            make_attempts(&opened, 4321).unwrap();
            let found = fs::metadata(&folder).unwrap();
            assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (0, 4321, 0o2750));
        }
        // The daemon's user may have made it.
        chown(&folder, Some(4321), None).unwrap();
        assert!(make_attempts(&opened, 4321).is_err());
    }
}
