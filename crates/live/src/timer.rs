//! Waiting for an instant on the clock by which everything is decided.

use std::io;
use std::os::fd::OwnedFd;

use miserly_core::Time;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::clock::BootClock;

/// A timer of the kernel, on the clock that runs while the machine sleeps.
#[derive(Debug)]
pub(crate) struct Timer {
    fd: AsyncFd<OwnedFd>,
}

impl Timer {
    pub(crate) fn new() -> io::Result<Timer> {
        let fd = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        // SAFETY: the descriptor is owned by what is registered, and stays open until that is dropped.
        #[allow(
            unsafe_code,
            reason = "tokio cannot see that a descriptor stays what it is; there is no other way to wait for one"
        )]
        let fd = unsafe { AsyncFd::register(fd) }?;
        Ok(Timer { fd })
    }

    /// Waits until then; for ever, for `None`.
    pub(crate) async fn wait(&mut self, clock: &BootClock, until: Option<Time>) -> io::Result<()> {
        // An instant of 0 would switch it off.
        let micros = until.map_or(0, |at| clock.boot_time(at).max(1));
        let value = Timespec { tv_sec: micros / 1_000_000, tv_nsec: micros % 1_000_000 * 1000 };
        let spec = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::ABSTIME, &spec)?;
        loop {
            let mut ready = self.fd.readable().await?;
            let read = ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut [0_u8; 8])?));
            if let Ok(read) = read {
                return read.map(|_| ());
            }
        }
    }
}
