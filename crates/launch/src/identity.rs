//! Which process is meant: never a bare number.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::procfs::{self, Stat};

/// A process, once and for all: numbers are used again, and a boot begins anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its number.
    pub pid: u32,
    /// Clock ticks from the boot to its start.
    pub start_time: u64,
    /// The boot.
    pub boot_id: String,
}

impl Identity {
    /// The process that is there now under a number.
    ///
    /// # Errors
    /// If there is none, or `/proc` cannot be read.
    pub(crate) fn of(pid: u32) -> io::Result<Identity> {
        let stat = Stat::of(pid)?.ok_or(Errno::SRCH)?;
        Ok(Identity { pid, start_time: stat.start_time, boot_id: procfs::boot_id()? })
    }

    /// A descriptor of the process (a pidfd); `None` if it has gone.
    ///
    /// # Errors
    /// If `/proc` cannot be read, or no descriptor can be had.
    pub(crate) fn open(&self) -> io::Result<Option<OwnedFd>> {
        if procfs::boot_id()? != self.boot_id {
            return Ok(None);
        }
        open(self.pid, self.start_time)
    }
}

/// A pidfd of the process of that number and start; `None` if it has gone. It is opened before the start is looked at: what it
/// means cannot change after that.
pub(crate) fn open(pid: u32, start_time: u64) -> io::Result<Option<OwnedFd>> {
    let Some(raw) = raw(pid) else { return Ok(None) };
    let fd = match pidfd_open(raw, PidfdFlags::empty()) {
        Ok(fd) => fd,
        // A thread that is nobody's main thread has no pidfd: the number has been used again.
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let same = Stat::of(pid)?.is_some_and(|stat| stat.start_time == start_time);
    Ok(same.then_some(fd))
}

/// Sends a signal to just that process; `false` if it has gone.
pub(crate) fn signal(stat: &Stat, signal: Signal) -> io::Result<bool> {
    let Some(fd) = open(stat.pid, stat.start_time)? else { return Ok(false) };
    match pidfd_send_signal(&fd, signal) {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A number as the system calls take it.
pub(crate) fn raw(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_start_is_another_process() {
        let me = Identity::of(std::process::id()).unwrap();
        assert!(me.open().unwrap().is_some());
        let later = Identity { start_time: me.start_time + 1, ..me.clone() };
        assert!(later.open().unwrap().is_none());
        let rebooted = Identity { boot_id: "another".to_owned(), ..me };
        assert!(rebooted.open().unwrap().is_none());
    }

    #[test]
    fn a_number_that_nobody_has_is_nobody() {
        assert!(open(i32::MAX as u32, 1).unwrap().is_none());
        assert!(open(u32::MAX, 1).unwrap().is_none());
    }
}
