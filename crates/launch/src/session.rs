//! The processes of a job whose shim is dead, by their session.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;

use rustix::process::Signal;

use crate::folder::Started;
use crate::handle::PATIENCE;
use crate::identity;
use crate::procfs::{self, Stat};
use crate::time::BootTime;
use crate::wait;

/// A session, and nothing that has its number later.
pub(crate) struct Session<'a> {
    started: &'a Started,
}

/// What came of killing a session.
pub(crate) enum Kill {
    /// Nothing is left; these were killed.
    All(Vec<u32>),
    /// These do not die: they wait in the kernel, or belong to another user.
    Survivors(Vec<u32>),
}

impl<'a> Session<'a> {
    pub(crate) fn of(started: &'a Started) -> Session<'a> {
        Session { started }
    }

    /// Kills the session, and looks again until a look finds nothing: what is found may have made another before it died.
    pub(crate) fn kill(&self) -> io::Result<Kill> {
        let until = BootTime::now().after(PATIENCE);
        let mut killed = BTreeSet::new();
        loop {
            let left: Vec<Stat> = self.members()?.into_iter().filter(|stat| !stat.is_dead()).collect();
            if left.is_empty() {
                return Ok(Kill::All(killed.into_iter().collect()));
            }
            if BootTime::now() >= until {
                return Ok(Kill::Survivors(left.iter().map(|stat| stat.pid).collect()));
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
            // The number has been used again, which it is only when nobody of the old session is left.
            return Ok(Vec::new());
        }
        all.retain(|stat| stat.start_time >= self.started.main.start_time && self.weighed(stat));
        Ok(all)
    }

    /// Whether the kernel weighs a process with those of this session, if it weighs sessions at all.
    fn weighed(&self, stat: &Stat) -> bool {
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
        // Not ours to kill: it stays among the survivors.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
        Ok(_) => wait::readable(&[fd.as_fd()], until).map(|_| ()),
    }
}
