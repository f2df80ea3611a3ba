//! The connection of a client to a relay.

use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{socket_domain, socket_peercred, socket_type};
use rustix::net::{AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketType, recvmsg};
use rustix::process::{Uid, getuid};

use super::PIECE;
use super::history::History;
use crate::frame::{ClientFrame, Frame, FrameReader, RelayFrame, RelayHello};

/// A client that is attached, or that has not sent its first frame yet.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    reader: FrameReader,
    /// Frames that are sent before any others, and the sent part of them.
    outgoing: Vec<u8>,
    sent: usize,
    /// The next byte of output; `None` before the first frame.
    place: Option<u64>,
    /// Bytes of input that the client does not know to be taken.
    taken: usize,
    /// Whether the end of the output is among the frames.
    ends: bool,
}

/// Returns the next connection of a client that a daemon passed to the socket, if there is one.
pub(super) fn receive(socket: &OwnedFd) -> Option<UnixStream> {
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        match recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, flags) {
            Err(Errno::INTR) => continue,
            Err(_) => return None,
            Ok(_) => {}
        }
        let passed = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        if let Some(client) = passed.and_then(|passed| admitted(passed).ok().flatten()) {
            return Some(client);
        }
    }
}

/// Returns a connection if the process at its other end is root's, or one of the job's user.
///
/// It has to be the end that a server accepted. At the other end, the kernel names the user who listens.
fn admitted(passed: OwnedFd) -> io::Result<Option<UnixStream>> {
    if socket_domain(&passed)? != AddressFamily::UNIX || socket_type(&passed)? != SocketType::STREAM {
        return Ok(None);
    }
    let uid = socket_peercred(&passed)?.uid;
    let stream = UnixStream::from(passed);
    // A socket that listens has a name, and a client has none.
    if (uid != getuid() && uid != Uid::ROOT) || !stream.peer_addr()?.is_unnamed() {
        return Ok(None);
    }
    stream.set_nonblocking(true)?;
    Ok(Some(stream))
}

impl Connection {
    pub(super) fn new(stream: UnixStream) -> Connection {
        let (reader, outgoing) = (FrameReader::default(), Vec::new());
        Connection { stream, reader, outgoing, sent: 0, place: None, taken: 0, ends: false }
    }

    /// Returns what to wait for. `end` is that of the output.
    pub(super) fn poll(&self, end: u64) -> PollFd<'_> {
        let has_frames = self.sent < self.outgoing.len() || self.taken > 0;
        let has_output = self.place.is_some_and(|place| place < end);
        let sends = if has_frames || has_output { PollFlags::OUT } else { PollFlags::empty() };
        PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::IN | sends)
    }

    /// Returns whether the client has got the end of the output.
    pub(super) fn is_finished(&self) -> bool {
        self.ends && self.sent == self.outgoing.len()
    }

    /// Takes note of input that the job has taken. Before the first frame it is that of another client.
    pub(super) fn add_taken(&mut self, bytes: usize) {
        if self.place.is_some() {
            self.taken += bytes;
        }
    }

    /// Reads once, and passes the whole frames to `handle`. Returns what that replied to the first frame.
    ///
    /// # Errors
    /// The client has closed the connection or breaks the protocol.
    pub(super) fn receive(
        &mut self,
        mut handle: impl FnMut(ClientFrame) -> io::Result<Option<RelayHello>>,
    ) -> io::Result<Option<RelayHello>> {
        let mut buffer = [0; PIECE];
        match self.stream.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => self.reader.push(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(error) => return Err(error),
        }
        let mut first = None;
        while let Some(frame) = self.reader.next_frame().map_err(io::Error::other)? {
            let opens = matches!(frame, ClientFrame::Open { .. });
            let is_first = self.place.is_none() && first.is_none();
            if opens != is_first {
                return Err(io::ErrorKind::InvalidData.into());
            }
            first = first.or(handle(frame)?);
        }
        Ok(first)
    }

    /// Sends what the client does not have, as much as it takes now.
    ///
    /// # Errors
    /// The client has closed the connection.
    pub(super) fn send(
        &mut self,
        hello: Option<RelayHello>,
        history: Option<&History>,
        has_ended: bool,
    ) -> io::Result<()> {
        if let Some(hello) = hello {
            self.place = Some(hello.from);
            RelayFrame::Hello(hello).write(&mut self.outgoing);
        }
        loop {
            self.flush()?;
            if self.sent < self.outgoing.len() {
                return Ok(());
            }
            self.outgoing.clear();
            self.sent = 0;
            self.fill(history, has_ended);
            if self.outgoing.is_empty() {
                return Ok(());
            }
        }
    }

    /// Adds the next frames, if there are any.
    fn fill(&mut self, history: Option<&History>, has_ended: bool) {
        let Some(place) = self.place else { return };
        if self.taken > 0 {
            RelayFrame::Taken(u32::try_from(self.taken).unwrap_or(u32::MAX)).write(&mut self.outgoing);
            self.taken = 0;
        }
        if let Some(history) = history.filter(|history| place < history.end()) {
            let (bytes, next) = history.piece(place);
            RelayFrame::Output(bytes).write(&mut self.outgoing);
            self.place = Some(next);
        } else if has_ended && !self.ends {
            RelayFrame::EndOfOutput.write(&mut self.outgoing);
            self.ends = true;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.sent < self.outgoing.len() {
            match self.stream.write(&self.outgoing[self.sent..]) {
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends the connection because of another client.
    pub(super) fn replace(mut self) {
        RelayFrame::Replaced.write(&mut self.outgoing);
        // A client that does not read gets no reason.
        let _ = self.flush();
    }
}
