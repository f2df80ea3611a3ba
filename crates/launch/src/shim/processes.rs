//! The processes of a job, seen from its shim: its descendants, and whoever else is in the session.
//!
//! The shim is the one to whom orphans come (`PR_SET_CHILD_SUBREAPER`), so a process that leaves the session is still found.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Write};

use rustix::io::Errno;
use rustix::process::{Signal, kill_process_group};

use crate::cpus;
use crate::identity::{self, raw};
use crate::procfs::{self, Stat};
use crate::sys;

/// A job that makes threads faster than they can be moved is left alone after so many looks.
const LOOKS: u32 = 100;

/// The processes of a job.
pub(super) struct Processes {
    /// The main process, which leads the session.
    main: u32,
    shim: u32,
}

/// What a look at processes that are to stop has found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// All have stopped.
    pub(super) stopped: bool,
    /// All are in the group that the main process leads.
    pub(super) together: bool,
}

impl Processes {
    pub(super) fn of_main(main: u32) -> Processes {
        Processes { main, shim: std::process::id() }
    }

    /// The processes that are not dead.
    pub(super) fn living(&self) -> io::Result<Vec<Stat>> {
        let all = procfs::processes()?;
        let mut family = BTreeSet::from([self.shim]);
        family.extend(all.iter().filter(|stat| stat.session == self.main).map(|stat| stat.pid));
        // A child may have a lower number than its parent.
        loop {
            let before = family.len();
            let children: Vec<u32> =
                all.iter().filter(|stat| family.contains(&stat.parent)).map(|stat| stat.pid).collect();
            family.extend(children);
            if family.len() == before {
                break;
            }
        }
        family.remove(&self.shim);
        Ok(all.into_iter().filter(|stat| family.contains(&stat.pid) && !stat.is_dead()).collect())
    }

    /// Sends a signal to every process. A process of another user's rights does not get it.
    pub(super) fn signal(&self, signal: Signal) -> io::Result<()> {
        for stat in &self.living()? {
            send(stat, signal)?;
        }
        Ok(())
    }

    /// Sends a signal to those that are in the group which the main process leads, at one stroke: not one after the other, as they are found.
    ///
    /// Only as long as that process has not been waited for: nobody else has its number then.
    pub(super) fn signal_group(&self, signal: Signal) {
        if let Some(group) = raw(self.main) {
            // It may not lead one yet, or be alone in it and dead.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Sends a signal to every process that is not in that group.
    pub(super) fn signal_others(&self, signal: Signal) -> io::Result<()> {
        for stat in self.living()?.iter().filter(|stat| stat.group != self.main) {
            send(stat, signal)?;
        }
        Ok(())
    }

    /// Stops every process that is not halted. `sent` are those that were sent a stop at looks before, by number and
    /// start.
    ///
    /// Where nobody was running, one look is proof: whoever is not found, because it was made during the look, was made by one that was.
    pub(super) fn stop(&self, sent: &mut BTreeSet<(u32, u64)>) -> io::Result<Look> {
        let mut look = Look { stopped: true, together: true };
        for stat in &self.living()? {
            look.together &= stat.group == self.main;
            if !stat.is_halted() {
                look.stopped &= !sent.insert((stat.pid, stat.start_time)) && stat.is_stopped();
                send(stat, Signal::STOP)?;
            }
        }
        Ok(look)
    }

    /// The processes that were stopped and have not stopped yet.
    pub(super) fn running(&self) -> io::Result<Vec<u32>> {
        Ok(self.living()?.iter().filter(|stat| !stat.is_stopped()).map(|stat| stat.pid).collect())
    }

    /// Moves every thread to these processors and, where the kernel lets it, out of the idle class.
    ///
    /// Looks again until a look finds no new thread: what is moved may make others before it is.
    ///
    /// # Errors
    /// What the kernel says of the processors.
    pub(super) fn place(&self, cpus: &[u32], out_of_idle: bool) -> io::Result<()> {
        let mut placed = BTreeSet::new();
        for _ in 0..LOOKS {
            let mut found_new = false;
            for process in self.living()? {
                for thread in procfs::threads(process.pid)? {
                    if placed.insert((thread.pid, thread.start_time)) {
                        found_new = true;
                        place_thread(&thread, cpus, out_of_idle)?;
                    }
                }
            }
            if !found_new {
                break;
            }
        }
        Ok(())
    }
}

fn send(stat: &Stat, signal: Signal) -> io::Result<()> {
    match identity::signal(stat, signal) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other.map(|_| ()),
    }
}

fn place_thread(thread: &Stat, cpus: &[u32], out_of_idle: bool) -> io::Result<()> {
    if out_of_idle {
        // What the kernel does not grant shows in the state that the shim answers with.
        let _ = sys::set_idle(raw(thread.pid), false);
    }
    match cpus::confine(raw(thread.pid), cpus) {
        // It has gone, or is not ours.
        Ok(()) | Err(Errno::SRCH | Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// How much a session gives way to others, -20 to 19; `false` if the kernel wants to be asked again, a tenth of a second later.
///
/// Where the kernel weighs sessions (`sched_autogroup`), the class and nice of a process count within its session alone, and an
/// early job would get as much as a critical one.
pub(super) fn weigh_session(main: u32, nice: i32) -> bool {
    let mut options = OpenOptions::new();
    let written = options
        .write(true)
        .open(format!("/proc/{main}/autogroup"))
        .and_then(|mut file| file.write_all(nice.to_string().as_bytes()));
    // Any other failure: there are no such weights here.
    !matches!(written, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}
