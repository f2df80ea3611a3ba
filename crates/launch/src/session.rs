//! Termination of a session whose shim is dead.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;

use rustix::process::Signal;

use crate::folder::StartRecord;
use crate::handle::REPLY_TIMEOUT;
use crate::identity;
use crate::procfs::{self, Stat};
use crate::time::BootTime;
use crate::wait;

/// The session of a job, distinguished from later sessions of the same number.
pub(crate) struct JobSession<'a> {
    started: &'a StartRecord,
}

/// The result of killing a session.
pub(crate) enum KillResult {
    /// No process is left; these were killed.
    All(Vec<u32>),
    /// These do not die: they wait in the kernel or belong to another user.
    Survivors(Vec<u32>),
}

impl<'a> JobSession<'a> {
    pub(crate) fn new(started: &'a StartRecord) -> JobSession<'a> {
        JobSession { started }
    }

    /// Kills processes until a scan finds none. A process may create another one before it dies.
    pub(crate) fn kill(&self) -> io::Result<KillResult> {
        let until = BootTime::now().after(REPLY_TIMEOUT);
        let mut killed = BTreeSet::new();
        loop {
            let left: Vec<Stat> = self.members()?.into_iter().filter(|stat| !stat.is_dead()).collect();
            if left.is_empty() {
                return Ok(KillResult::All(killed.into_iter().collect()));
            }
            if BootTime::now() >= until {
                return Ok(KillResult::Survivors(left.iter().map(|stat| stat.pid).collect()));
            }
            killed.extend(left.iter().map(|stat| stat.pid));
            for stat in &left {
                kill_one(stat, until)?;
            }
        }
    }

    fn members(&self) -> io::Result<Vec<Stat>> {
        let mut all = procfs::processes()?;
        all.retain(|stat| stat.session == self.started.sid);
        let foreign =
            |stat: &Stat| stat.pid == self.started.sid && stat.start_time != self.started.main.start_time;
        if all.iter().any(foreign) {
            // The number was reused, which requires that the old session is empty.
            return Ok(Vec::new());
        }
        all.retain(|stat| stat.start_time >= self.started.main.start_time && self.has_same_autogroup(stat));
        Ok(all)
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

/// Kills a process and waits for its death.
fn kill_one(stat: &Stat, until: BootTime) -> io::Result<()> {
    let Some(fd) = identity::open(stat.pid, stat.start_time)? else { return Ok(()) };
    match identity::signal(stat, Signal::KILL) {
        // The process belongs to another user and remains among the survivors.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
        Ok(_) => wait::readable(&[fd.as_fd()], until).map(|_| ()),
    }
}
