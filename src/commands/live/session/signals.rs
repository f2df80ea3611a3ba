//! The signals of a command with an interactive job.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Signals that are read in place of being delivered, so that each exit of the command restores the terminal.
#[derive(Debug)]
pub(crate) struct Signals(SignalFd);

impl Signals {
    /// Blocks the signals. The process has no other thread yet.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub(super) fn block() -> io::Result<Signals> {
        let read = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGWINCH];
        let read: SigSet = read.into_iter().collect();
        read.thread_block()?;
        Ok(Signals(SignalFd::with_flags(&read, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?))
    }

    /// Returns the next signal, if there is one.
    pub(super) fn next(&self) -> Option<Signal> {
        let info = self.0.read_signal().ok().flatten()?;
        Signal::try_from(i32::try_from(info.ssi_signo).ok()?).ok()
    }

    /// Returns the next signal that ends a command, if there is one.
    pub(super) fn next_end(&self) -> Option<Signal> {
        std::iter::from_fn(|| self.next()).find(|signal| *signal != Signal::SIGWINCH)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Returns the exit code of a command that a signal ended.
pub(super) fn code(signal: Signal) -> u8 {
    u8::try_from(128 + signal as i32).unwrap_or(u8::MAX)
}
