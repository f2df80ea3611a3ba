//! The processes that identities and numbers stand for.

use std::io;
use std::os::fd::OwnedFd;

use miserly_attempt::Identity;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::clock::current_boot;
use crate::procfs::Stat;

/// Returns the identity of the process that has this number now.
///
/// # Errors
/// There is no such process, or `/proc` cannot be read.
pub(crate) fn of(pid: u32) -> io::Result<Identity> {
    let stat = Stat::from_pid(pid)?.ok_or(Errno::SRCH)?;
    Ok(Identity { pid, start_time: stat.start_time, boot_id: current_boot()? })
}

/// Opens a pidfd of a process, or returns `None` if it has exited.
///
/// # Errors
/// `/proc` cannot be read, or no pidfd can be opened.
pub(crate) fn open_same(process: &Identity) -> io::Result<Option<OwnedFd>> {
    if current_boot()? != process.boot_id {
        return Ok(None);
    }
    open(process.pid, process.start_time)
}

/// Opens a pidfd of the process with this number and start, or returns `None` if it has exited.
///
/// The pidfd is opened before the start is checked, so its process cannot change afterwards.
pub(crate) fn open(pid: u32, start_time: u64) -> io::Result<Option<OwnedFd>> {
    let Some(raw) = raw(pid) else { return Ok(None) };
    let fd = match pidfd_open(raw, PidfdFlags::empty()) {
        Ok(fd) => fd,
        // A thread that leads no process has no pidfd: the number was reused.
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let same = Stat::from_pid(pid)?.is_some_and(|stat| stat.start_time == start_time);
    Ok(same.then_some(fd))
}

/// Sends a signal to exactly that process; `false` if it has exited.
pub(crate) fn signal(stat: &Stat, signal: Signal) -> io::Result<bool> {
    let Some(fd) = open(stat.pid, stat.start_time)? else { return Ok(false) };
    match pidfd_send_signal(&fd, signal) {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Converts a process number for system calls.
pub(crate) fn raw(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_start_is_another_process() {
        let me = of(std::process::id()).unwrap();
        assert!(open_same(&me).unwrap().is_some());
        let later = Identity { start_time: me.start_time + 1, ..me.clone() };
        assert!(open_same(&later).unwrap().is_none());
        let rebooted = Identity { boot_id: "another".into(), ..me };
        assert!(open_same(&rebooted).unwrap().is_none());
    }

    #[test]
    fn an_unused_number_has_no_pidfd() {
        assert!(open(i32::MAX as u32, 1).unwrap().is_none());
        assert!(open(u32::MAX, 1).unwrap().is_none());
    }
}
