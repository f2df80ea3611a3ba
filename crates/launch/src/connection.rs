//! Nonblocking messages over a socket, one line of JSON each.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use miserly_attempt::Connection as Lines;

/// Longest accepted line in bytes.
const LONGEST: usize = 1 << 20;

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    /// Bytes that were read and not yet consumed.
    inbox: Vec<u8>,
    /// Whether the line at the begin of the inbox is too long, and its first part was dropped.
    skips: bool,
    closed: bool,
}

impl Connection {
    pub(crate) fn new(stream: UnixStream) -> io::Result<Connection> {
        stream.set_nonblocking(true)?;
        Ok(Connection { stream, inbox: Vec::new(), skips: false, closed: false })
    }

    /// Returns the descriptor. Bytes that were read and not consumed are lost.
    pub(crate) fn into_fd(self) -> OwnedFd {
        self.stream.into()
    }

    /// Reads the available bytes; `false` if there are none.
    fn read(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.closed = true,
            Ok(read) => self.inbox.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.closed = true,
            Err(error) => return Err(error),
        }
        Ok(true)
    }
}

impl Lines for Connection {
    fn receive_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        while !self.has_line() && !self.closed {
            if self.inbox.len() > LONGEST {
                self.inbox.clear();
                self.skips = true;
            }
            if !self.read()? {
                return Ok(None);
            }
        }
        let Some(end) = self.inbox.iter().position(|byte| *byte == b'\n') else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let line: Vec<u8> = self.inbox.drain(..=end).collect();
        Ok(Some(if std::mem::take(&mut self.skips) { Vec::new() } else { line }))
    }

    fn has_line(&self) -> bool {
        self.inbox.contains(&b'\n')
    }

    fn send_line(&mut self, line: &[u8]) -> io::Result<()> {
        self.stream.write_all(line)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (UnixStream, Connection) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (ours, Connection::new(theirs).unwrap())
    }

    #[test]
    fn messages_arrive_whole_and_in_order_and_then_the_end() {
        let (mut from, mut to) = pair();
        assert_eq!(to.receive::<u32>().unwrap(), None);
        from.write_all(b"1\n2\n3").unwrap();
        assert_eq!(to.receive::<u32>().unwrap(), Some(1));
        assert_eq!(to.receive::<u32>().unwrap(), Some(2));
        assert_eq!(to.receive::<u32>().unwrap(), None);
        from.write_all(b"4\n").unwrap();
        drop(from);
        assert_eq!(to.receive::<u32>().unwrap(), Some(34));
        assert_eq!(to.receive::<u32>().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_malformed_message_is_an_error() {
        let (mut from, mut to) = pair();
        from.write_all(b"{\n").unwrap();
        assert!(to.receive::<u32>().is_err());
    }

    #[test]
    fn a_line_that_is_too_long_is_empty_and_the_next_one_whole() {
        let (mut from, mut to) = pair();
        let sender = std::thread::spawn(move || {
            from.write_all(&b"9".repeat(3 * LONGEST)).unwrap();
            from.write_all(b"\n5\n").unwrap();
            from
        });
        let mut next = || loop {
            if let Some(line) = to.receive_line().unwrap() {
                return line;
            }
            std::thread::yield_now();
        };
        assert_eq!(next(), b"");
        assert_eq!(next(), b"5\n");
        sender.join().unwrap();
    }

    #[test]
    fn a_reader_that_does_not_read_is_not_waited_for() {
        let (_from, mut to) = pair();
        let error = (0..100_000).find_map(|_| to.send(&"x".repeat(1000)).err()).unwrap();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
