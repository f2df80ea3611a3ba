//! Waiting for descriptors, with an end.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::time::BootTime;

/// Waits until something can be read from one of these, or `until`; whether it can.
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
