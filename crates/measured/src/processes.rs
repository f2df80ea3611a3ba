//! The processes and folders of a measurement. All end with it, also at an interrupt.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

/// What is open now. Each process is started under this lock, so an interrupt finds it.
static OPEN: Mutex<Open> = Mutex::new(Open::new());

/// Time between two looks at a process.
const PAUSE: Duration = Duration::from_millis(2);

/// Rounds of killing: a shim may just start a process.
const ROUNDS: usize = 200;

/// A child of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChildId(u64);

/// Children and folders.
struct Open {
    children: Vec<(ChildId, Child)>,
    next: u64,
    folders: Vec<PathBuf>,
    groups: Vec<PathBuf>,
    /// Whether an interrupt has ended the measurement.
    closed: bool,
}

impl Open {
    const fn new() -> Open {
        Open { children: Vec::new(), next: 0, folders: Vec::new(), groups: Vec::new(), closed: false }
    }

    fn start(&mut self, command: &mut Command) -> io::Result<ChildId> {
        let child = command.spawn()?;
        self.next += 1;
        self.children.push((ChildId(self.next), child));
        Ok(ChildId(self.next))
    }

    fn child(&mut self, id: ChildId) -> io::Result<&mut Child> {
        let found = self.children.iter_mut().find(|(other, _)| *other == id);
        found.map(|(_, child)| child).ok_or_else(|| io::Error::other("the process has been waited for"))
    }

    fn remove(&mut self, id: ChildId) {
        self.children.retain(|(other, _)| *other != id);
    }

    /// Ends all children and all processes of the folders, and removes the folders.
    fn close(&mut self) {
        for (_, mut child) in self.children.drain(..) {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
        for folder in std::mem::take(&mut self.folders) {
            kill_of(&folder);
            // What is left is in a temporary folder.
            let _ = fs::remove_dir_all(&folder);
        }
        for group in std::mem::take(&mut self.groups) {
            remove_groups(&group);
        }
    }
}

/// Ends all processes that the measurement started, and removes its folders. For a handler of signals, which then ends the
/// process.
pub fn clean_up() {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.closed = true;
    open.close();
}

/// Returns what is open. After an interrupt it does not return: the handler of the signal ends the process.
fn open() -> MutexGuard<'static, Open> {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if open.closed {
        drop(open);
        loop {
            thread::park();
        }
    }
    open
}

/// The processes and the folder of one measurement, which end with it.
pub(crate) struct Scope {
    pub(crate) folder: PathBuf,
}

impl Scope {
    /// Creates the temporary folder.
    pub(crate) fn new() -> io::Result<Scope> {
        let mut open = open();
        let folder = tempfile::Builder::new().prefix("miserly-1999-").tempdir()?.keep();
        open.folders.push(folder.clone());
        Ok(Scope { folder })
    }

    /// Removes a control group at the end of the open scope, if it does not exist yet. Returns whether it does.
    pub(crate) fn own_group(group: &Path) -> bool {
        let is_own = !group.exists();
        if is_own {
            open().groups.push(group.to_owned());
        }
        is_own
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        open().close();
    }
}

/// Starts a process.
pub(crate) fn start(command: &mut Command) -> io::Result<ChildId> {
    open().start(command)
}

/// Returns the number of a process that was not waited for.
pub(crate) fn pid(id: ChildId) -> io::Result<u32> {
    open().child(id).map(|child| child.id())
}

/// Returns how a process ended, or `None` if it runs.
pub(crate) fn ended(id: ChildId) -> io::Result<Option<ExitStatus>> {
    let mut open = open();
    let status = open.child(id)?.try_wait()?;
    if status.is_some() {
        open.remove(id);
    }
    Ok(status)
}

/// Waits for the end of a process.
pub(crate) fn wait(id: ChildId) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = ended(id)? {
            return Ok(status);
        }
        thread::sleep(PAUSE);
    }
}

/// Kills a process and waits for its end.
pub(crate) fn kill(id: ChildId) -> io::Result<()> {
    let mut open = open();
    let child = open.child(id)?;
    child.kill()?;
    child.wait()?;
    open.remove(id);
    Ok(())
}

/// Kills the shims and the jobs of the daemon in a folder: its path is in their arguments or their environment.
///
/// For a moment of its start a process shows neither, so that none is left only if two looks find none.
pub(crate) fn kill_of(folder: &Path) {
    let mut looks_without = 0;
    for _ in 0..ROUNDS {
        let found = of_folder(folder);
        looks_without = if found.is_empty() { looks_without + 1 } else { 0 };
        if looks_without == 2 {
            return;
        }
        for pid in found {
            kill_if_of(pid, folder);
        }
        thread::sleep(PAUSE * 5);
    }
}

fn of_folder(folder: &Path) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter(|pid| *pid != getpid() && names(*pid, folder.as_os_str())).collect()
}

/// Kills a process, if it is still one of the folder: its number may be another one's by now.
fn kill_if_of(pid: Pid, folder: &Path) {
    // It may have ended.
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    if names(pid, folder.as_os_str()) {
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
}

/// Returns whether a text is in the arguments or the environment of a process.
fn names(pid: Pid, text: &OsStr) -> bool {
    ["cmdline", "environ"].into_iter().any(|file| {
        let bytes = fs::read(format!("/proc/{}/{file}", pid.as_raw_nonzero())).unwrap_or_default();
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    })
}

/// Removes a control group with the groups below it. A group with processes stays.
pub(crate) fn remove_groups(group: &Path) {
    let below = fs::read_dir(group).into_iter().flatten().flatten().map(|entry| entry.path());
    below.filter(|path| path.is_dir()).for_each(|path| remove_groups(&path));
    let _ = fs::remove_dir(group);
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    fn sleep() -> Command {
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null());
        command
    }

    #[test]
    fn closing_ends_children_and_the_processes_that_name_the_folder() {
        let folder = tempfile::tempdir().unwrap().keep();
        let mut open = Open::new();
        let child = open.start(&mut sleep()).unwrap();
        let number = open.child(child).unwrap().id();
        // Not a child of the measurement, as a job of the daemon.
        let mut job = sleep().env("MISERLY_ATTEMPT_FOLDER", folder.join("1.1")).spawn().unwrap();
        let mut other = sleep().spawn().unwrap();
        open.folders.push(folder.clone());
        open.close();
        assert!(job.wait().unwrap().code().is_none(), "it was killed");
        assert!(!Path::new(&format!("/proc/{number}")).exists());
        assert!(!folder.exists());
        assert!(other.try_wait().unwrap().is_none(), "another process runs on");
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn groups_are_removed_from_below() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().join("group");
        fs::create_dir_all(group.join("jobs/1.1")).unwrap();
        remove_groups(&group);
        assert!(!group.exists());
    }
}
