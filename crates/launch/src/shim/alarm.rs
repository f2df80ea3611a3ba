//! The shim's clock.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, read};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::time::BootTime;

/// A descriptor that is readable from an instant on. It rings after a suspended machine has come back, too.
pub(super) struct Alarm {
    fd: OwnedFd,
}

impl Alarm {
    pub(super) fn new() -> io::Result<Alarm> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Alarm { fd: timerfd_create(TimerfdClockId::Boottime, flags)? })
    }

    /// Sets the instant, in place of the one before; `None` for never.
    pub(super) fn set(&self, at: Option<BootTime>) -> io::Result<()> {
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Zero would be never; an instant that is past rings at once.
        let it_value = at.map_or(never, |at| at.max(BootTime(1)).timespec());
        let spec = Itimerspec { it_interval: never, it_value };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &spec)?;
        Ok(())
    }

    /// Makes it unreadable until it rings again.
    pub(super) fn hush(&self) -> io::Result<()> {
        match read(&self.fd, &mut [0; 8]) {
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
