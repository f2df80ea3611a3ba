//! Raw bytes on the socket of a daemon, as foreign clients send them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::Value;

use super::{Daemon, SOON};

/// The answer before the connection was closed.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The HTTP status; 0 if the answer is not HTTP.
    pub(crate) status: u16,
    /// The body; null if it is not JSON.
    pub(crate) body: Value,
}

impl Answer {
    /// Reads until the other side closes.
    pub(crate) fn read(stream: &mut UnixStream) -> Answer {
        let mut bytes = vec![];
        // Closing with unread data resets the connection. The data before that counts.
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.matches("HTTP/1.1 ").count() <= 1, "more than one answer: {text}");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        Answer { status, body: serde_json::from_str(body).unwrap_or_default() }
    }
}

pub(crate) fn connect(daemon: &Daemon) -> UnixStream {
    let stream = UnixStream::connect(daemon.path("socket")).expect("a daemon");
    stream.set_read_timeout(Some(SOON)).expect("a time-out");
    stream.set_write_timeout(Some(SOON)).expect("a time-out");
    stream
}

/// Returns the answer of a daemon to these bytes.
pub(crate) fn send(daemon: &Daemon, bytes: &[u8]) -> Answer {
    let mut stream = connect(daemon);
    // The daemon may close before all is sent.
    let _ = stream.write_all(bytes);
    Answer::read(&mut stream)
}

/// Returns a request that closes the connection.
pub(crate) fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body.as_bytes()].concat()
}
