//! The separation of a daemon from its rights: what needs root is prepared, the executor is started, and the daemon becomes
//! an ordinary user for good.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use miserly_executor::{GroupFacts, NoProgram, Program, Settings, StartError, start};
use miserly_launch::{empty_bounding_set, priority_rights, shim};
use nix::unistd::{self, Gid, Uid, User};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, chownat, fchmod, fchown, openat};
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, no_new_privs,
    set_capabilities, set_no_new_privs,
};

use crate::config::Configuration;
use crate::folder::{self, FolderError, Use};
use crate::process::JobGroups;
use crate::server::Access;
use crate::syscall_filter;

/// The files of a daemon in the folder of its state. The executor's are not among them.
const STATE_FILES: [&str; 10] = [
    "lock",
    "store",
    "backups",
    "ended",
    "forecasts.db",
    "forecasts.db-wal",
    "forecasts.db-shm",
    "shadow.db",
    "shadow.db-wal",
    "shadow.db-shm",
];

/// The number of looks at the threads, and the pause between them.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// A daemon that has given up the rights of root, and its executor.
#[derive(Debug)]
pub struct Separated {
    /// The daemon's end of the socket pair.
    pub(crate) socket: OwnedFd,
    /// What the kernel does for the control groups of jobs; `None` if they have none.
    pub(crate) groups: Option<GroupFacts>,
    /// The reason why the shims are not the program `miserly-shim`.
    pub(crate) no_shim_program: Option<NoProgram>,
}

/// The reason why a daemon cannot give up its rights.
#[derive(Debug, thiserror::Error)]
pub enum SeparationError {
    /// It has none.
    #[error(
        "user = {0:?}: only root can run jobs as their users; start the daemon as root, or remove the line"
    )]
    NotRoot(String),
    /// The system does not know the user.
    #[error(
        "user = {0:?}: the system knows no such user; create it with `useradd --system --user-group {0}`"
    )]
    Unknown(String),
    /// It is root.
    #[error("user = {0:?}: this user has the rights of root; give another one")]
    Root(String),
    /// There is none, and an executor has one.
    #[error("an executor of its own needs `user` in the configuration")]
    NoUser,
    /// The service of the executor is not root.
    #[error("only root can serve executors, which have its rights")]
    ServiceOfOther,
    /// A daemon that gets its executor from a service is another user, or root.
    #[error("user = {0:?}: a daemon with --executor is started as this user: write User={0} in its unit")]
    NotUser(String),
    /// The configuration cannot be read.
    #[error("{0}")]
    Configuration(String),
    /// Others are in its group, who could read what jobs run.
    #[error(
        "user = {0:?}: the user needs a group of the same name as first group, and no other user may be in it"
    )]
    SharedGroup(String),
    /// A folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The state is that of a daemon of root, or of another user.
    #[error(
        "{}: it belongs to user {uid}, and the daemon will be {user}; if no daemon uses it, give it away with `chown -R {user}:`",
        .path.display()
    )]
    OfOther {
        /// The file or folder.
        path: PathBuf,
        /// The owner.
        uid: u32,
        /// The user.
        user: String,
    },
    /// Other programs use the folder of the socket.
    #[error(
        "{}: the folder of the socket belongs to root and has other files; give the socket a folder of its own", .0.display()
    )]
    SocketFolder(PathBuf),
    /// There is no executor.
    #[error("there is no executor: {0}")]
    NoExecutor(#[from] NoProgram),
    /// The executor did not begin.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A thread would keep the rights.
    #[error("the daemon has threads that would keep the rights of root; this is a defect")]
    Threads,
    /// Some rights are left.
    #[error("the daemon still has rights of root ({0}); this is a defect")]
    Rights(&'static str),
    /// A system call failed.
    #[error("{what}: {error}")]
    System {
        /// The failed operation.
        what: String,
        /// The error of the system.
        error: io::Error,
    },
}

pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> SeparationError {
    move |error| SeparationError::System { what: what.into(), error }
}

/// Starts the executor and gives up the rights of root, if the configuration has a `user`. `exe` is the program of the daemon.
///
/// No other thread may exist. The store is not open, and no request was read.
///
/// # Errors
/// The user, a folder or a program is unsuitable; this process is not one of root's; or rights are left.
pub fn separate(configuration: &Configuration, exe: &Path) -> Result<Option<Separated>, SeparationError> {
    let Some(name) = &configuration.user else { return Ok(None) };
    if !geteuid().is_root() {
        return Err(SeparationError::NotRoot(name.clone()));
    }
    let user = daemon_user(name)?;
    prepare_state(&configuration.state, &user)?;
    prepare_socket(&configuration.socket, configuration.access, &user)?;
    let program = Program::beside(exe, "miserly-executor", &miserly_executor::identity())?;
    let (shim, no_shim_program) = match Program::beside(exe, "miserly-shim", &shim::identity()) {
        Ok(shim) => (shim, None),
        Err(reason) => (Program::own(exe), Some(reason)),
    };
    let started = start(&program, settings(configuration, &user), &shim)?;
    for warning in &started.warnings {
        tracing::warn!("{warning}");
    }
    // A process remembers the answer: shims have rights that this process gives up.
    priority_rights();
    give_up_rights(&user)?;
    tracing::info!("jobs run as their users; the daemon has given up the rights of root and is {name}");
    Ok(Some(Separated { socket: started.socket, groups: started.groups, no_shim_program }))
}

/// Returns the daemon's user, whose first group is its own.
pub(crate) fn daemon_user(name: &str) -> Result<User, SeparationError> {
    let looked_up = |error: nix::Error| system(format!("cannot look up user {name}"))(error.into());
    let user = User::from_name(name).map_err(looked_up)?;
    let user = user.ok_or_else(|| SeparationError::Unknown(name.to_owned()))?;
    if user.uid.is_root() || user.gid.as_raw() == 0 {
        return Err(SeparationError::Root(name.to_owned()));
    }
    if !folder::is_private_group_of(&user, user.gid.as_raw()) {
        return Err(SeparationError::SharedGroup(name.to_owned()));
    }
    Ok(user)
}

pub(crate) fn settings(configuration: &Configuration, user: &User) -> Settings {
    Settings {
        state: configuration.state.clone(),
        uid: user.uid.as_raw(),
        gid: user.gid.as_raw(),
        socket: configuration.socket.clone(),
        allow_root: configuration.allow_root,
        rules: configuration.rules.clone(),
        groups: JobGroups::settings(configuration),
    }
}

/// Makes the folder of the state one in which the daemon's user creates files, and cannot replace those of root.
pub(crate) fn prepare_state(state: &Path, user: &User) -> Result<(), SeparationError> {
    let group = user.gid.as_raw();
    let path = folder::open(state, Use::SharedState { group })?;
    for name in STATE_FILES {
        let path = state.join(name);
        let owner = fs::symlink_metadata(&path).ok().map(|found| found.uid());
        if let Some(uid) = owner.filter(|uid| *uid != user.uid.as_raw()) {
            return Err(SeparationError::OfOther { path, uid, user: user.name.clone() });
        }
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let changed = openat(&path, ".", flags, Mode::empty()).and_then(|folder| {
        fchown(&folder, None, Some(rustix::fs::Gid::from_raw(group)))?;
        fchmod(&folder, Mode::RWXU | Mode::RWXG | Mode::SVTX)
    });
    changed.map_err(|error| system(format!("cannot give {} to the daemon", state.display()))(error.into()))
}

/// Gives the folder of the socket to the daemon's user.
///
/// A folder of root's is given away only if it has nothing but the files of the socket.
pub(crate) fn prepare_socket(socket: &Path, access: Access, user: &User) -> Result<(), SeparationError> {
    let Some(path) = socket.parent() else { return Ok(()) };
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == user.uid.as_raw()) {
        return Ok(());
    }
    let mode = if access == Access::Everybody { 0o755 } else { 0o700 };
    let folder = folder::open(path, Use::Socket(mode))?;
    let failed = |error: io::Error| system(format!("cannot give {} to the daemon", path.display()))(error);
    let mut own = vec![];
    for entry in fs::read_dir(path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if !["", ".lock", ".new"].iter().any(|ending| name == beside(socket, ending)) {
            return Err(SeparationError::SocketFolder(path.to_owned()));
        }
        own.push(name);
    }
    let (uid, gid) = (
        Some(rustix::fs::Uid::from_raw(user.uid.as_raw())),
        Some(rustix::fs::Gid::from_raw(user.gid.as_raw())),
    );
    let give = || {
        for name in &own {
            chownat(&folder, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        // Last: from then on the daemon's user can replace the files.
        chownat(&folder, "", uid, gid, AtFlags::EMPTY_PATH)
    };
    give().map_err(|error| failed(error.into()))
}

/// Returns the name of a file of the socket.
fn beside(socket: &Path, ending: &str) -> OsString {
    let mut name = socket.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    name
}

/// Gives up all rights of root for good, and checks that none is left.
fn give_up_rights(user: &User) -> Result<(), SeparationError> {
    check_threads()?;
    let (uid, gid) = (user.uid, user.gid);
    empty_bounding_set().map_err(system("cannot empty the bounding set"))?;
    let become_user = || {
        unistd::setgroups(&[gid])?;
        unistd::setresgid(gid, gid, gid)?;
        unistd::setresuid(uid, uid, uid)
    };
    become_user().map_err(|error| system(format!("cannot become {}", user.name))(error.into()))?;
    remove_rights(user)
}

/// Gives up what a process of this user could have of root's rights, and the system calls that a daemon does not need.
pub(crate) fn remove_rights(user: &User) -> Result<(), SeparationError> {
    check_threads()?;
    let none = CapabilitySet::empty();
    let remove_rest = || {
        set_no_new_privs(true)?;
        clear_ambient_capability_set()?;
        let CapabilitySets { effective, permitted, inheritable } = capabilities(None)?;
        if (effective | permitted | inheritable).is_empty() {
            // A unit may forbid the call.
            return Ok(());
        }
        set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
    };
    remove_rest().map_err(|error| system("cannot give up capabilities")(error.into()))?;
    if let Err(error) = syscall_filter::apply() {
        tracing::warn!("the daemon can make all system calls of an ordinary user: {error}");
    }
    check_rights(user.uid, user.gid)
}

/// Checks that this process has no other thread. One that has just ended is listed for a moment.
fn check_threads() -> Result<(), SeparationError> {
    for _ in 0..TRIES {
        let threads = fs::read_dir("/proc/self/task").map_err(system("cannot list the threads"))?.count();
        if threads == 1 {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    Err(SeparationError::Threads)
}

/// Checks that this process is an ordinary user, and stays one.
fn check_rights(uid: Uid, gid: Gid) -> Result<(), SeparationError> {
    let left = |what| Err(SeparationError::Rights(what));
    let failed = |error: rustix::io::Errno| system("cannot read the rights of the daemon")(error.into());
    if unistd::setuid(Uid::from_raw(0)).is_ok() || unistd::setgid(Gid::from_raw(0)).is_ok() {
        return left("it can become root again");
    }
    let users = unistd::getresuid().map_err(|error| system("cannot read the user")(error.into()))?;
    let groups = unistd::getresgid().map_err(|error| system("cannot read the group")(error.into()))?;
    if [users.real, users.effective, users.saved] != [uid; 3] {
        return left("its user");
    }
    if [groups.real, groups.effective, groups.saved] != [gid; 3]
        || unistd::getgroups()
            .map_err(|error| system("cannot read the groups")(error.into()))?
            .iter()
            .any(|other| *other != gid)
    {
        return left("its groups");
    }
    let CapabilitySets { effective, permitted, inheritable } = capabilities(None).map_err(failed)?;
    if !(effective | permitted | inheritable).is_empty() {
        return left("its capabilities");
    }
    if no_new_privs().map_err(failed)? { Ok(()) } else { left("programs that it runs gain rights") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Machine;

    fn configuration(text: &str) -> Configuration {
        let machine = Machine::new(vec![0], 64 << 20);
        Configuration::parse("daemon.toml", text, &machine).unwrap()
    }

    #[test]
    fn without_a_user_nothing_is_given_up() {
        assert!(separate(&configuration(""), Path::new("/proc/self/exe")).unwrap().is_none());
        assert_eq!(configuration("user = \"miserly\"").state, Path::new("/var/lib/miserly"));
    }

    #[test]
    fn root_and_users_in_the_group_of_others_are_refused() {
        assert!(matches!(daemon_user("root"), Err(SeparationError::Root(_))));
        assert!(matches!(daemon_user("no-such-user"), Err(SeparationError::Unknown(_))));
        // Its group has another name.
        assert!(matches!(daemon_user("nobody"), Err(SeparationError::SharedGroup(_))));
    }

    #[test]
    fn a_folder_with_other_files_stays_root_s() {
        if !geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let daemon = User { uid: Uid::from_raw(4321), gid: Gid::from_raw(4321), ..user_of_this_process() };
        let owner = |path: &Path| fs::metadata(path).unwrap().uid();
        fs::write(folder.path().join("other"), "").unwrap();
        let socket = folder.path().join("socket");
        let given = prepare_socket(&socket, Access::Own, &daemon);
        assert!(matches!(given, Err(SeparationError::SocketFolder(_))));
        assert_eq!(owner(folder.path()), 0);
        fs::remove_file(folder.path().join("other")).unwrap();
        fs::write(folder.path().join("socket.lock"), "").unwrap();
        for _ in 0..2 {
            prepare_socket(&socket, Access::Own, &daemon).unwrap();
            assert_eq!([folder.path(), &folder.path().join("socket.lock")].map(owner), [4321; 2]);
        }
    }

    fn user_of_this_process() -> User {
        User::from_uid(Uid::effective()).unwrap().unwrap()
    }
}
