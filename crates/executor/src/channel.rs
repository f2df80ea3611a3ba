//! Messages with descriptors between two processes: datagrams of JSON over a socket pair.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The most bytes of a datagram. A longer message is in a memory file, whose descriptor comes first.
const INLINE: usize = 64 << 10;
/// The most bytes of a message. A submission has at most 4 MiB of JSON.
const LONGEST: usize = 32 << 20;
/// The most descriptors of a message, with that of a memory file.
const DESCRIPTORS: usize = 3;
/// The first byte of a datagram.
const IN_DATAGRAM: u8 = b'd';
const IN_MEMORY_FILE: u8 = b'm';

/// One end of a socket pair. Several threads may use it.
#[derive(Debug)]
pub(crate) struct Channel(OwnedFd);

impl Channel {
    /// Returns both ends.
    pub(crate) fn pair() -> io::Result<(Channel, Channel)> {
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Channel(one), Channel(other)))
    }

    /// Returns the end with this descriptor.
    ///
    /// # Errors
    /// It is no such socket.
    pub(crate) fn from_fd(fd: OwnedFd) -> io::Result<Channel> {
        let is_local = rustix::net::sockopt::socket_domain(&fd)? == AddressFamily::UNIX;
        if is_local && rustix::net::sockopt::socket_type(&fd)? == SocketType::SEQPACKET {
            Ok(Channel(fd))
        } else {
            Err(Errno::PROTOTYPE.into())
        }
    }

    pub(crate) fn into_fd(self) -> OwnedFd {
        self.0
    }

    /// Sends a message. With the flag `DONTWAIT` it does not wait while the other end does not read.
    ///
    /// # Errors
    /// The message is too long, or the other end is closed.
    pub(crate) fn send<T: Serialize>(
        &self,
        message: &T,
        fds: &[BorrowedFd<'_>],
        flags: SendFlags,
    ) -> io::Result<()> {
        let mut bytes = vec![IN_DATAGRAM];
        serde_json::to_writer(&mut bytes, message)?;
        if bytes.len() > LONGEST {
            return Err(Errno::MSGSIZE.into());
        }
        if bytes.len() <= INLINE {
            return self.send_datagram(&bytes, fds, flags);
        }
        let file = memory_file(&bytes[1..])?;
        let all: Vec<BorrowedFd<'_>> = std::iter::once(file.as_fd()).chain(fds.iter().copied()).collect();
        self.send_datagram(&[IN_MEMORY_FILE], &all, flags)
    }

    fn send_datagram(&self, bytes: &[u8], fds: &[BorrowedFd<'_>], flags: SendFlags) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(Errno::MSGSIZE.into());
        }
        loop {
            match sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, flags | SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for a message, and returns it with its descriptors. Returns `None` once the other end is closed.
    ///
    /// # Errors
    /// `InvalidData` if the other end sent no such message.
    pub(crate) fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        let mut bytes = vec![0; INLINE];
        let Some((length, mut fds)) = self.receive_datagram(&mut bytes)? else { return Ok(None) };
        let message = match bytes[..length] {
            [IN_DATAGRAM, ref text @ ..] => serde_json::from_slice(text)?,
            [IN_MEMORY_FILE] if !fds.is_empty() => serde_json::from_slice(&content(fds.remove(0))?)?,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        Ok(Some((message, fds)))
    }

    fn receive_datagram(&self, bytes: &mut [u8]) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            match recvmsg(&self.0, &mut [IoSliceMut::new(bytes)], &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                Err(Errno::CONNRESET) => return Ok(None),
                other => break other?,
            }
        };
        let mut fds = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // No message is empty.
        Ok((received.bytes > 0).then_some((received.bytes, fds)))
    }
}

/// Returns a memory file with this content, which cannot be changed.
fn memory_file(bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = memfd_create("miserly message", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(file);
    file.write_all(bytes)?;
    fcntl_add_seals(&file, sealed())?;
    Ok(file.into())
}

/// Returns the content of a memory file. It has seals, so a read neither waits nor sees a change.
fn content(file: OwnedFd) -> io::Result<Vec<u8>> {
    let is_sealed = fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(sealed()));
    let size = usize::try_from(fstat(&file)?.st_size).unwrap_or(usize::MAX);
    if !is_sealed || size > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; size];
    File::from(file).read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

fn sealed() -> SealFlags {
    SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    const WAIT: SendFlags = SendFlags::empty();

    #[test]
    fn messages_of_each_length_arrive_with_their_descriptors_and_then_the_end() {
        let (one, other) = Channel::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        for length in [0, 1, INLINE - 3, INLINE - 2, INLINE, 1 << 20] {
            let text = "x".repeat(length);
            one.send(&text, &[writer.as_fd()], WAIT).unwrap();
            one.send(&length, &[], WAIT).unwrap();
            let (received, mut fds) = other.receive::<String>().unwrap().unwrap();
            assert_eq!((received.len(), fds.len()), (length, 1));
            File::from(fds.remove(0)).write_all(b"!").unwrap();
            reader.read_exact(&mut [0]).unwrap();
            assert_eq!(other.receive::<usize>().unwrap().unwrap().0, length);
        }
        drop(one);
        assert!(other.receive::<usize>().unwrap().is_none());
        assert!(other.send(&1, &[], WAIT).is_err());
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let (one, other) = Channel::pair().unwrap();
        let invalid = |bytes: &[u8], fds: &[BorrowedFd<'_>]| {
            one.send_datagram(bytes, fds, WAIT).unwrap();
            assert!(other.receive::<u32>().is_err(), "{bytes:?}");
        };
        invalid(b"d", &[]);
        invalid(b"d{", &[]);
        invalid(b"x1", &[]);
        invalid(b"m", &[]);
        let (reader, _writer) = io::pipe().unwrap();
        // A read of it would wait.
        invalid(b"m", &[reader.as_fd()]);
        // Its content could change.
        let open = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        invalid(b"m", &[open.as_fd()]);
        let large = memory_file(&[]).map(|_| vec![b' '; LONGEST + 1]).unwrap();
        invalid(b"m", &[memory_file(&large).unwrap().as_fd()]);
        invalid(&vec![b'd'; INLINE + 1], &[]);
        assert!(one.send(&"x".repeat(LONGEST), &[], WAIT).is_err());
        one.send(&7, &[], WAIT).unwrap();
        assert_eq!(other.receive::<u32>().unwrap().unwrap().0, 7);
    }

    #[test]
    fn another_socket_is_no_channel() {
        let (stream, _) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(Channel::from_fd(stream.into()).is_err());
        let (one, _other) = Channel::pair().unwrap();
        assert!(Channel::from_fd(one.into_fd()).is_ok());
    }
}
