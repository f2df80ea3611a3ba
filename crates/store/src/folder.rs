//! Folders whose content no other user can replace.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use miserly_executor::overflow_user;
use nix::unistd::{self, Gid, Uid};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, fchmod, fstat, mkdirat, openat, readlinkat, statat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

/// The flag with which a file is not opened through a link.
#[allow(clippy::cast_possible_wrap, reason = "the flags of the kernel have few bits")]
pub const NO_LINK: i32 = OFlags::NOFOLLOW.bits() as i32;

/// The most symbolic links on a path, as the kernel has it.
const LINKS: u32 = 40;

/// The reason why a folder cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Another user owns it, and could replace its content.
    #[error("{}: it belongs to user {uid}, who can replace its content; use a path of your own or of root's", .path.display())]
    Owner {
        /// The folder or file.
        path: PathBuf,
        /// The owner.
        uid: u32,
    },
    /// Other users may write to it.
    #[error("{}: other users may write to it (mode {mode:o}); remove that permission with `chmod go-w`, or use another path", .path.display())]
    Writable {
        /// The folder or file.
        path: PathBuf,
        /// The mode.
        mode: u32,
    },
    /// It is a symbolic link where none is followed.
    #[error("{}: it is a symbolic link, and none is followed here; give the path without it", .path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// A system call failed.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
}

/// The use of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The state. It is no link, and it is not shared as `/tmp` is. It is created with mode 0700.
    State,
    /// The state of a daemon that gives up the rights of root. Its group may write, and the sticky bit keeps the files of root.
    SharedState {
        /// The daemon's group.
        group: u32,
    },
    /// The socket. It is created with this mode.
    Socket(u32),
    /// A program of the operator. It is not created, and may be reached through links.
    Program,
}

/// Opens a folder that only this user and root can change, and creates it if it is missing.
///
/// The same holds for all folders above it, except that a folder with the sticky bit may be shared.
/// A link on the way is followed if this user or root owns it in such a folder.
///
/// # Errors
/// The first folder on the way that other users could change.
pub fn open(path: &Path, used: Use) -> Result<OwnedFd, FolderError> {
    let absolute = std::path::absolute(path).map_err(|error| FolderError::Io { path: path.into(), error })?;
    let mut walk = Walk::new(absolute.components())?;
    while let Some(name) = walk.left.pop_front() {
        walk.enter(&name, used)?;
    }
    let Walk { folder, path, .. } = walk;
    let found = fstat(&folder).map_err(|error| io_error(&path, error))?;
    match used {
        Use::SharedState { group } if found.st_gid == group && found.st_mode & 0o1002 == 0o1000 => {
            check_owner(&path, &found, false)?;
        }
        Use::State | Use::SharedState { .. } => check(&path, &found, false)?,
        Use::Socket(_) | Use::Program => {}
    }
    Ok(folder)
}

/// Checks that only this user and root can replace a program, on the way to it through links.
///
/// # Errors
/// The first folder on the way that other users could change.
pub fn check_program(path: &Path) -> Result<(), FolderError> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Some(parent) = path.parent() else { break };
        open(parent, Use::Program)?;
        match std::fs::read_link(&path) {
            Ok(target) => path = parent.join(target),
            Err(_) => return Ok(()),
        }
    }
    Err(FolderError::Link { path })
}

/// Checks that no file in a folder is a link, or can be changed by another user. A missing folder has no files.
///
/// # Errors
/// The first such file.
pub fn check_content(folder: &Path) -> Result<(), FolderError> {
    let failed = |error| FolderError::Io { path: folder.to_owned(), error };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        match rustix::fs::lstat(&path) {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Symlink => {
                return Err(FolderError::Link { path });
            }
            Ok(found) => check(&path, &found, false)?,
            // It was removed in the meantime.
            Err(Errno::NOENT) => {}
            Err(error) => return Err(io_error(&path, error)),
        }
    }
    Ok(())
}

/// The way from the root to a folder.
struct Walk {
    folder: OwnedFd,
    path: PathBuf,
    left: VecDeque<OsString>,
    links: u32,
}

impl Walk {
    fn new<'a>(components: impl Iterator<Item = Component<'a>>) -> Result<Walk, FolderError> {
        let path = PathBuf::from("/");
        let folder = openat(CWD, &path, flags(), Mode::empty()).map_err(|error| io_error(&path, error))?;
        Ok(Walk { folder, path, left: names(components), links: 0 })
    }

    /// Enters a folder of the present one, or follows a link.
    fn enter(&mut self, name: &OsStr, used: Use) -> Result<(), FolderError> {
        let path =
            if name == ".." { self.path.parent().unwrap_or(&self.path).into() } else { self.path.join(name) };
        match openat(&self.folder, name, flags(), Mode::empty()) {
            Ok(folder) => {
                let found = fstat(&folder).map_err(|error| io_error(&path, error))?;
                check(&path, &found, true)?;
                (self.folder, self.path) = (folder, path);
                Ok(())
            }
            Err(Errno::NOENT) => self.create(name, &path, used),
            Err(Errno::LOOP | Errno::NOTDIR) => self.follow(name, path, used),
            Err(error) => Err(io_error(&path, error)),
        }
    }

    fn create(&mut self, name: &OsStr, path: &Path, used: Use) -> Result<(), FolderError> {
        let failed = |error| io_error(path, error);
        let mode = match used {
            Use::State | Use::SharedState { .. } => 0o700,
            Use::Socket(mode) => mode,
            Use::Program => return Err(failed(Errno::NOENT)),
        };
        match mkdirat(&self.folder, name, Mode::RWXU) {
            // Another process was faster.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        let readable = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(&self.folder, name, readable, Mode::empty()).map_err(failed)?;
        let found = fstat(&folder).map_err(failed)?;
        check(path, &found, true)?;
        // The umask has no say in it.
        fchmod(&folder, Mode::from_raw_mode(mode)).map_err(failed)?;
        (self.folder, self.path) = (folder, path.to_owned());
        Ok(())
    }

    /// Continues at the target of a link.
    fn follow(&mut self, name: &OsStr, path: PathBuf, used: Use) -> Result<(), FolderError> {
        let found = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW);
        let found = found.map_err(|error| io_error(&path, error))?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Symlink {
            return Err(io_error(&path, Errno::NOTDIR));
        }
        self.links += 1;
        if (!matches!(used, Use::Socket(_) | Use::Program) && self.left.is_empty()) || self.links > LINKS {
            return Err(FolderError::Link { path });
        }
        check_owner(&path, &found, true)?;
        let target = readlinkat(&self.folder, name, vec![]).map_err(|error| io_error(&path, error))?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_absolute() {
            let Walk { folder, path, .. } = Walk::new(std::iter::empty())?;
            (self.folder, self.path) = (folder, path);
        }
        for name in names(target.components()).into_iter().rev() {
            self.left.push_front(name);
        }
        Ok(())
    }
}

fn names<'a>(components: impl Iterator<Item = Component<'a>>) -> VecDeque<OsString> {
    let name = |component: Component<'a>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    components.filter_map(name).collect()
}

fn flags() -> OFlags {
    OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn check(path: &Path, found: &Stat, may_be_shared: bool) -> Result<(), FolderError> {
    check_owner(path, found, may_be_shared)?;
    let mode = found.st_mode & 0o7777;
    let sticky = mode & 0o1000 != 0 && may_be_shared;
    let by_group = mode & 0o020 != 0 && !is_private_group(found.st_gid);
    if (mode & 0o002 != 0 || by_group) && !sticky {
        return Err(FolderError::Writable { path: path.to_owned(), mode });
    }
    Ok(())
}

/// Checks the owner of a folder or file. A folder above may also belong to a user outside this user namespace: the files
/// of the machine's root look like that.
fn check_owner(path: &Path, found: &Stat, may_be_outside: bool) -> Result<(), FolderError> {
    let uid = found.st_uid;
    let outside = || may_be_outside && uid == overflow_user() && is_in_user_namespace();
    if uid == 0 || uid == geteuid().as_raw() || outside() {
        return Ok(());
    }
    Err(FolderError::Owner { path: path.to_owned(), uid })
}

/// Returns whether some users of the machine have no number here.
fn is_in_user_namespace() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().ne(["0", "0", "4294967295"])
}

fn io_error(path: &Path, error: Errno) -> FolderError {
    FolderError::Io { path: path.to_owned(), error: error.into() }
}

/// Returns whether a group is the private one of this process's user: it has the user's name, and no other member.
fn is_private_group(gid: u32) -> bool {
    unistd::User::from_uid(Uid::effective())
        .is_ok_and(|user| user.is_some_and(|user| is_private_group_of(&user, gid)))
}

/// Returns whether a group is the private one of a user: it has the user's name, and no other member.
pub fn is_private_group_of(user: &unistd::User, gid: u32) -> bool {
    let Ok(Some(group)) = unistd::Group::from_gid(Gid::from_raw(gid)) else { return false };
    user.gid == group.gid && user.name == group.name && group.mem.iter().all(|member| *member == user.name)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use tempfile::TempDir;

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn made(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn missing_folders_are_made_with_their_mode_whatever_the_umask() {
        let home = TempDir::new().unwrap();
        let [state, socket] = ["a/state", "b/socket"].map(|name| home.path().join(name));
        open(&state, Use::State).unwrap();
        open(&socket, Use::Socket(0o755)).unwrap();
        assert_eq!([&state, &socket].map(|path| made(path)), [0o700, 0o755]);
        assert_eq!(made(socket.parent().unwrap()), 0o755);
    }

    #[test]
    fn no_folder_on_the_way_is_open_to_others() {
        let home = TempDir::new().unwrap();
        let (open_one, state) = (home.path().join("open"), home.path().join("open/state"));
        fs::create_dir(&open_one).unwrap();
        for (bits, trusted) in [(0o777, false), (0o707, false), (0o1777, true), (0o755, true)] {
            mode(&open_one, bits);
            assert_eq!(open(&state, Use::State).is_ok(), trusted, "{bits:o}");
        }
        // The state itself is not shared.
        mode(&state, 0o1777);
        assert!(matches!(open(&state, Use::State), Err(FolderError::Writable { .. })));
        open(&state, Use::Socket(0o755)).unwrap();
    }

    #[test]
    fn a_link_of_ones_own_is_followed_on_the_way_only() {
        let home = TempDir::new().unwrap();
        fs::create_dir(home.path().join("real")).unwrap();
        symlink("real", home.path().join("link")).unwrap();
        open(&home.path().join("link/state"), Use::State).unwrap();
        assert_eq!(made(&home.path().join("real/state")), 0o700);
        assert!(matches!(open(&home.path().join("link"), Use::State), Err(FolderError::Link { .. })));
        symlink("round", home.path().join("round")).unwrap();
        assert!(matches!(open(&home.path().join("round/x"), Use::State), Err(FolderError::Link { .. })));
        fs::write(home.path().join("file"), "").unwrap();
        assert!(matches!(open(&home.path().join("file/x"), Use::State), Err(FolderError::Io { .. })));
    }

    #[test]
    fn a_state_has_no_links_and_no_files_that_others_may_write() {
        let home = TempDir::new().unwrap();
        check_content(&home.path().join("missing")).unwrap();
        fs::write(home.path().join("jobs.db"), "").unwrap();
        check_content(home.path()).unwrap();
        mode(&home.path().join("jobs.db"), 0o666);
        assert!(matches!(check_content(home.path()), Err(FolderError::Writable { .. })));
        fs::remove_file(home.path().join("jobs.db")).unwrap();
        symlink("/etc/passwd", home.path().join("lock")).unwrap();
        assert!(matches!(check_content(home.path()), Err(FolderError::Link { .. })));
    }
}
