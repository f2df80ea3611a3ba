//! The connection to the relay of a job.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use miserly_api::client::Attached;
use miserly_launch::frame::{ClientFrame, Frame, FrameReader, LONGEST, RelayFrame, RelayHello, WINDOW};
use rustix::event::{PollFd, PollFlags};

/// A connection to a relay.
#[derive(Debug)]
pub(super) struct Link {
    stream: UnixStream,
    reader: FrameReader,
    outgoing: Vec<u8>,
    /// Bytes of input that the job has not got.
    on_the_way: usize,
    /// The state at the begin, once the relay has sent it.
    pub(super) hello: Option<RelayHello>,
    /// Whether one side has ended the connection.
    pub(super) is_over: bool,
    /// Whether another client came before the first frame.
    pub(super) is_replaced: bool,
}

impl Link {
    /// Requests the output from a place on; `None` is the last part of it.
    pub(super) fn open(Attached { stream, received }: Attached, from: Option<u64>) -> Link {
        let mut reader = FrameReader::default();
        reader.push(&received);
        let (outgoing, hello) = (Vec::new(), None);
        let (is_over, is_replaced) = (false, false);
        let mut link = Link { stream, reader, outgoing, on_the_way: 0, hello, is_over, is_replaced };
        link.send(&ClientFrame::Open { from });
        link
    }

    /// Returns the number of bytes of input that may be sent now.
    pub(super) fn room(&self) -> usize {
        let takes_input = self.hello.is_some_and(|hello| hello.takes_input) && !self.is_over;
        if takes_input { WINDOW.saturating_sub(self.on_the_way).min(LONGEST) } else { 0 }
    }

    /// Sends a frame. The part that the relay does not take now is sent later.
    pub(super) fn send(&mut self, frame: &ClientFrame) {
        if let ClientFrame::Input(bytes) = frame {
            self.on_the_way += bytes.len();
        }
        frame.write(&mut self.outgoing);
        self.flush();
    }

    pub(super) fn flush(&mut self) {
        while !self.outgoing.is_empty() && !self.is_over {
            match self.stream.write(&self.outgoing) {
                Ok(sent) => drop(self.outgoing.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // What the relay has sent before its end is still read.
                Err(_) => self.outgoing.clear(),
            }
        }
    }

    /// Returns the events to wait for.
    pub(super) fn poll(&self) -> PollFd<'_> {
        let sends = if self.outgoing.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::IN | sends)
    }

    /// Reads once.
    pub(super) fn receive(&mut self) {
        let mut buffer = [0; 16 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.is_over = true,
            Ok(read) => self.reader.push(&buffer[..read]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.is_over = true,
        }
    }

    /// Reads the first frame of the relay, if it has come.
    ///
    /// # Errors
    /// The other end is no relay of this version.
    pub(super) fn greet(&mut self) -> anyhow::Result<()> {
        // What follows the first frame is left to `next_frame`.
        while self.hello.is_none() && !self.is_over {
            let Some(frame) = self.reader.next_frame()? else { break };
            match frame {
                RelayFrame::Hello(hello) => {
                    self.on_the_way += hello.queued as usize;
                    self.hello = Some(hello);
                }
                RelayFrame::Replaced => (self.is_over, self.is_replaced) = (true, true),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the next received frame. Takes note of those that concern only the connection.
    ///
    /// # Errors
    /// The other end is no relay of this version.
    pub(super) fn next_frame(&mut self) -> anyhow::Result<Option<RelayFrame>> {
        while let Some(frame) = self.reader.next_frame()? {
            match frame {
                RelayFrame::Taken(bytes) => {
                    self.on_the_way = self.on_the_way.saturating_sub(bytes as usize);
                }
                other => return Ok(Some(other)),
            }
        }
        Ok(None)
    }
}
