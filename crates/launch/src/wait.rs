//! Waiting for descriptors with a time limit.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::time::BootTime;

/// Waits until one of the descriptors is readable or `until` has passed; `true` if one is readable.
pub(crate) fn readable(fds: &[BorrowedFd<'_>], until: BootTime) -> io::Result<bool> {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    loop {
        let left = BootTime(0).after(until.since(BootTime::now())).timespec();
        match poll(&mut polled, Some(&left)) {
            Ok(count) => return Ok(count > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
