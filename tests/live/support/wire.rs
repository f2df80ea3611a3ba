//! Bytes on a daemon's socket, as clients send them that are not ours.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::Value;

use super::{Daemon, SOON};

/// What came back before the connection was closed.
#[derive(Debug)]
pub(crate) struct Answer {
    /// 0 where it was no HTTP.
    pub(crate) status: u16,
    /// The body; nothing, where it is no JSON.
    pub(crate) body: Value,
}

impl Answer {
    /// All that comes until the other side closes.
    pub(crate) fn read(stream: &mut UnixStream) -> Answer {
        let mut bytes = vec![];
        // Whoever closes with something unread resets the connection; what came before that counts.
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

/// What a daemon says to these bytes.
pub(crate) fn send(daemon: &Daemon, bytes: &[u8]) -> Answer {
    let mut stream = connect(daemon);
    // A daemon that has heard enough closes before all is sent.
    let _ = stream.write_all(bytes);
    Answer::read(&mut stream)
}

/// A request after which the connection ends.
pub(crate) fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body.as_bytes()].concat()
}
