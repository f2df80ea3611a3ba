//! The timer of the shim.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use miserly_attempt::BootTime;
use rustix::io::{Errno, read};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::clock::MachineClock;

/// A descriptor that is readable from a given instant on, also after the machine was suspended.
pub(super) struct Alarm {
    fd: OwnedFd,
}

impl Alarm {
    pub(super) fn new() -> io::Result<Alarm> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Alarm { fd: timerfd_create(TimerfdClockId::Boottime, flags)? })
    }

    /// Replaces the instant; `None` for never.
    pub(super) fn set(&self, at: Option<BootTime>) -> io::Result<()> {
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        // A past instant fires at once.
        let it_value = at.map_or(never, MachineClock::timer);
        let spec = Itimerspec { it_interval: never, it_value };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &spec)?;
        Ok(())
    }

    /// Makes the descriptor unreadable until the timer fires again.
    pub(super) fn clear(&self) -> io::Result<()> {
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
