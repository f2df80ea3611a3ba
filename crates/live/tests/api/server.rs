//! A server on a socket in a folder of its own, and a plain HTTP client.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use miserly_api::client::Client;
use miserly_live::server::{Access, Limits, bind, serve_within};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::fake::Fake;

/// A limit for anything that ends at all, on a machine that is busy with other tests.
pub(crate) const SOON: Duration = Duration::from_mins(1);

/// A server that runs until this is dropped.
pub(crate) struct Server {
    folder: TempDir,
    pub(crate) fake: Fake,
    runtime: Option<Runtime>,
    stop: Option<oneshot::Sender<()>>,
}

impl Server {
    pub(crate) fn new() -> Server {
        Server::within(Limits::default())
    }

    pub(crate) fn within(limits: Limits) -> Server {
        Server::for_whom(Access::Own, limits)
    }

    pub(crate) fn for_whom(access: Access, limits: Limits) -> Server {
        let folder = TempDir::new().expect("a folder");
        if access == Access::Everybody {
            fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("a folder");
        }
        let fake = Fake::default();
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let bound = bind(&folder.path().join("socket"), access).expect("a socket");
        let (stop, stopped) = oneshot::channel::<()>();
        let service = fake.clone();
        runtime.spawn(serve_within(limits, bound, service, async {
            let _ = stopped.await;
        }));
        Server { folder, fake, runtime: Some(runtime), stop: Some(stop) }
    }

    /// Stops the server, as a signal stops a daemon.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.socket()).expect("a client")
    }

    pub(crate) fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).expect("a server");
        stream.set_read_timeout(Some(SOON)).expect("a time-out");
        stream
    }

    /// Sends bytes, and reads until the connection is closed.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that has read enough closes before all is sent.
        let _ = stream.write_all(bytes);
        Answer::read(&mut stream)
    }

    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> Answer {
        self.raw(request(method, path, body).as_bytes())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Open requests are not waited for.
        self.runtime.take().expect("a runtime").shutdown_background();
    }
}

/// Returns a request after which the connection ends.
pub(crate) fn request(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// Returns a body that was sent in chunks.
fn joined(mut chunks: &str) -> String {
    let mut body = String::new();
    while let Some((length, rest)) = chunks.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).expect("the length of a chunk");
        body.push_str(&rest[..length]);
        chunks = rest[length..].trim_start_matches("\r\n");
    }
    body
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn read(stream: &mut UnixStream) -> Answer {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8(bytes).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        let chunked = head.contains("transfer-encoding: chunked");
        Answer { status, body: if chunked { joined(body) } else { body.to_owned() } }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
