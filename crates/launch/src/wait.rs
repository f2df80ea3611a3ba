//! Waiting for descriptors with a time limit.

use crate::clock::{self, MachineClock as _};
use miserly_attempt::BootTime;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Waits until one of the descriptors is readable or `until` has passed; `true` if one is readable.
pub(crate) fn readable(fds: &[BorrowedFd<'_>], until: BootTime) -> io::Result<bool> {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    loop {
        let left = clock::timespec(BootTime(0).after(until.since(BootTime::now())));
        match poll(&mut polled, Some(&left)) {
            Ok(count) => return Ok(count > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
