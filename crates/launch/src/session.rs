//! Termination of a job without its shim.

use miserly_attempt::{BootTime, Identity, KillResult, StartRecord};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use miserly_cgroup::JobGroup;
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use crate::clock::MachineClock as _;
use crate::identity;
use crate::procfs::{self, Stat};
use crate::wait;

/// Environment variable with the folder of the attempt, in every process of a job.
pub(crate) const MARK: &str = "MISERLY_ATTEMPT_FOLDER";

/// The processes of a job that can be found without its shim.
///
/// They are the session, distinguished from later sessions of the same number, and the processes
/// that have the attempt's folder in their environment or are in its control group. While the shim
/// exists, they are also its descendants.
pub(crate) struct JobSession<'a> {
    started: &'a StartRecord,
    /// Entry of the environment.
    mark: Vec<u8>,
    shim: Option<&'a Identity>,
}

impl<'a> JobSession<'a> {
    pub(crate) fn new(started: &'a StartRecord, folder: &Path) -> JobSession<'a> {
        let mark = [MARK.as_bytes(), b"=", folder.as_os_str().as_bytes()].concat();
        JobSession { started, mark, shim: None }
    }

    /// Adds the descendants of the shim, if it is known.
    pub(crate) fn with_shim(self, shim: Option<&'a Identity>) -> JobSession<'a> {
        JobSession { shim, ..self }
    }

    /// Kills processes until a scan finds none, or until an instant. Scans at least twice, because a
    /// process may create another one before it dies.
    pub(crate) fn kill(&self, until: BootTime) -> io::Result<KillResult> {
        let mut killed = BTreeSet::new();
        loop {
            let left: Vec<Stat> = self.members()?.into_iter().filter(|stat| !stat.is_dead()).collect();
            if left.is_empty() {
                return Ok(KillResult::All(killed.into_iter().collect()));
            }
            if !killed.is_empty() && BootTime::now() >= until {
                return Ok(KillResult::Survivors(left.iter().map(|stat| stat.pid).collect()));
            }
            killed.extend(left.iter().map(|stat| stat.pid));
            if let Some(group) = self.group() {
                // Also those that are frozen or are being created. A kernel before 5.14 lacks it.
                let _ = group.kill();
            }
            kill_all(&left, until)?;
        }
    }

    fn members(&self) -> io::Result<Vec<Stat>> {
        let mut all = procfs::processes()?;
        let mut members = self.descendants(&all);
        members.extend(self.group().and_then(|group| group.processes().ok()).unwrap_or_default());
        let is_reused = all.iter().any(|stat| self.is_foreign_leader(stat));
        let is_member = |stat: &Stat| {
            members.contains(&stat.pid)
                // If the number was reused, the old session is empty.
                || !is_reused && stat.session == self.started.sid && self.has_same_autogroup(stat)
                || procfs::has_in_environment(stat.pid, &self.mark)
        };
        let since = self.started.main.start_time;
        all.retain(|stat| stat.start_time >= since && stat.pid != std::process::id() && is_member(stat));
        Ok(all)
    }

    fn group(&self) -> Option<JobGroup> {
        // A group that is gone has no processes.
        self.started.cgroup.as_deref().and_then(|path| JobGroup::open(path).ok())
    }

    fn is_foreign_leader(&self, stat: &Stat) -> bool {
        stat.pid == self.started.sid && stat.start_time != self.started.main.start_time
    }

    /// Returns the descendants of the shim, without it.
    fn descendants(&self, all: &[Stat]) -> BTreeSet<u32> {
        let is_shim = |stat: &&Stat| {
            self.shim.is_some_and(|shim| (shim.pid, shim.start_time) == (stat.pid, stat.start_time))
        };
        let shim: BTreeSet<u32> = all.iter().filter(is_shim).map(|stat| stat.pid).collect();
        &procfs::descendants(all, shim.clone()) - &shim
    }

    /// Returns whether a process is in the autogroup of this session, or autogroups are
    /// unavailable.
    fn has_same_autogroup(&self, stat: &Stat) -> bool {
        match (&self.started.autogroup, procfs::autogroup(stat.pid)) {
            (Some(ours), Some(theirs)) => *ours == theirs,
            _ => true,
        }
    }
}

/// Kills processes and waits for their deaths, at most until an instant.
fn kill_all(processes: &[Stat], until: BootTime) -> io::Result<()> {
    let mut dying: Vec<OwnedFd> = Vec::new();
    for stat in processes {
        let Some(fd) = identity::open(stat.pid, stat.start_time)? else { continue };
        match pidfd_send_signal(&fd, Signal::KILL) {
            Ok(()) => dying.push(fd),
            // A process of another user remains among the survivors.
            Err(Errno::SRCH | Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
    }
    for fd in &dying {
        wait::readable(&[fd.as_fd()], until)?;
    }
    if dying.is_empty() {
        // Processes that cannot be killed are looked at again, but not without a pause.
        wait::readable(&[], until.min(BootTime::now().after(PAUSE)))?;
    }
    Ok(())
}

/// Pause between scans for processes that cannot be killed.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
