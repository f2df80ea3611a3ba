//! The descriptors of all shims in one epoll instance.

use std::io;
use std::mem::MaybeUninit;

use miserly_launch::{BootTime, MachineClock as _};
use miserly_launcher::Readiness::{self, Connection, Exit, Partition};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;

/// The most events of one wait.
const BATCH: usize = 256;

/// A descriptor that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    /// There are messages.
    Messages,
    /// Something of an attempt has changed.
    Attempt(Readiness),
}

impl Ready {
    fn data(self) -> EventData {
        EventData::new_u64(match self {
            Ready::Messages => 0,
            Ready::Attempt(Exit(number)) => number * 3,
            Ready::Attempt(Connection(number)) => number * 3 + 1,
            Ready::Attempt(Partition(number)) => number * 3 + 2,
        })
    }

    fn from_data(data: u64) -> Ready {
        match data {
            0 => Ready::Messages,
            data if data % 3 == 0 => Ready::Attempt(Exit(data / 3)),
            data if data % 3 == 1 => Ready::Attempt(Connection(data / 3)),
            data => Ready::Attempt(Partition(data / 3)),
        }
    }
}

/// Waits for the descriptors that were added. Shims have numbers from 1, which are not reused.
#[derive(Debug)]
pub(super) struct Poller(OwnedFd);

impl Poller {
    pub(super) fn new() -> io::Result<Poller> {
        Ok(Poller(epoll::create(CreateFlags::CLOEXEC)?))
    }

    pub(super) fn add(&self, fd: BorrowedFd<'_>, ready: Ready) -> io::Result<()> {
        // A file of a control group can always be read; a change is an exception.
        let is_file = matches!(ready, Ready::Attempt(Partition(_)));
        let events = if is_file { EventFlags::PRI } else { EventFlags::IN };
        Ok(epoll::add(&self.0, fd, ready.data(), events)?)
    }

    /// Removes a descriptor. It must be removed before it is closed: a program that is being spawned
    /// has a copy of it for a moment, which would keep it here.
    pub(super) fn remove(&self, fd: BorrowedFd<'_>) {
        // It was added.
        let _ = epoll::delete(&self.0, fd);
    }

    /// Waits until a descriptor is ready, or until an instant.
    ///
    /// # Errors
    /// None that the kernel is documented to return.
    pub(super) fn wait(&self, until: Option<BootTime>) -> io::Result<Vec<Ready>> {
        let within = until.and_then(|at| Timespec::try_from(at.since(BootTime::now())).ok());
        let mut buffer = [const { MaybeUninit::<epoll::Event>::uninit() }; BATCH];
        match epoll::wait(&self.0, &mut buffer, within.as_ref()) {
            Ok((ready, _)) => Ok(ready.iter().map(|event| Ready::from_data(event.data.u64())).collect()),
            Err(Errno::INTR) => Ok(vec![]),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_descriptor_is_ready_until_it_is_removed() {
        let poller = Poller::new().unwrap();
        let (mut sender, receiver) = UnixStream::pair().unwrap();
        let soon = || Some(BootTime::now().after(Duration::from_millis(20)));
        for ready in [Ready::Messages, Ready::Attempt(Exit(3)), Ready::Attempt(Connection(3))] {
            poller.add(receiver.as_fd(), ready).unwrap();
            assert_eq!(poller.wait(soon()).unwrap(), []);
            sender.write_all(b"x").unwrap();
            assert_eq!(poller.wait(None).unwrap(), [ready]);
            poller.remove(receiver.as_fd());
            let mut receiver = &receiver;
            io::Read::read_exact(&mut receiver, &mut [0]).unwrap();
        }
    }
}
