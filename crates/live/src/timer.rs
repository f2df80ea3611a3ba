//! A timer on the clock of ticks.

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
        // SAFETY: the registered `OwnedFd` owns the descriptor, which stays open until the value is
        // dropped.
        #[allow(
            unsafe_code,
            reason = "tokio cannot see that a descriptor stays what it is; there is no other way to wait for one"
        )]
        let fd = unsafe { AsyncFd::register(fd) }?;
        Ok(Timer { fd })
    }

    /// Waits until an instant, or for ever if it is `None`.
    pub(crate) async fn wait(&mut self, clock: &BootClock, until: Option<Time>) -> io::Result<()> {
        loop {
            self.wait_once(clock, until).await?;
            // A clock that steps in a test has it fire early.
            if until.is_none_or(|until| until <= clock.now()) {
                return Ok(());
            }
        }
    }

    async fn wait_once(&mut self, clock: &BootClock, until: Option<Time>) -> io::Result<()> {
        // An instant of 0 would disarm the timer.
        let micros = until.map_or(0, |at| clock.boot_time(at).timer().max(1));
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
