//! The socket by which a daemon passes the connection of a client to the relay of a job.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::folder::Folder;

/// A connection to the relay of a running attempt.
///
/// The relay gets the client's own connection. It checks the user at the other end, and then the daemon has no part in the
/// connection any more. So a daemon without rights cannot write input for the jobs of its users.
#[derive(Debug)]
pub struct RelaySocket(OwnedFd);

impl RelaySocket {
    /// Connects to the relay of the attempt in a folder.
    ///
    /// # Errors
    /// `NotFound` or `ConnectionRefused` if the attempt has no relay, or none any more.
    pub fn connect(attempt: &Path) -> io::Result<RelaySocket> {
        let folder = Folder::open(attempt).map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
        folder.connect_relay().map(RelaySocket)
    }

    /// Passes a connection to the relay, without a wait.
    ///
    /// # Errors
    /// The relay has ended, or has not yet taken the connections before.
    pub fn pass(&self, client: BorrowedFd<'_>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [client];
        if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(&self.0, &[IoSlice::new(b"c")], &mut control, flags)?;
        Ok(())
    }
}
