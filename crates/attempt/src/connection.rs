//! Messages over a connection, one line of JSON each.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// One end of a connection between two processes. No call waits.
pub trait Connection {
    /// Returns the next line with its end, or `None` if there is none yet. A line that is too long is empty.
    ///
    /// # Errors
    /// `UnexpectedEof` once the peer has closed the connection or has exited, and all its lines are consumed.
    fn receive_line(&mut self) -> io::Result<Option<Vec<u8>>>;

    /// Returns whether a whole line was read and not yet consumed, so that a wait for the peer does not report it.
    fn has_line(&self) -> bool;

    /// Sends a line with its end.
    ///
    /// # Errors
    /// Also if the peer does not read and the buffer is full. The connection is then broken.
    fn send_line(&mut self, line: &[u8]) -> io::Result<()>;

    /// Sends a message.
    ///
    /// # Errors
    /// As [`send_line`](Connection::send_line).
    fn send<T: Serialize>(&mut self, message: &T) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.send_line(&line)
    }

    /// Returns the next message, or `None` if there is none yet.
    ///
    /// # Errors
    /// As [`receive_line`](Connection::receive_line); `InvalidData` for a malformed message.
    fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        self.receive_line()?.map(|line| Ok(serde_json::from_slice(&line)?)).transpose()
    }
}
