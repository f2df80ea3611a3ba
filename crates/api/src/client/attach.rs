//! The client's part in the connection to a running job.

use std::os::unix::net::UnixStream as BlockingStream;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode, header, upgrade};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use super::{Client, ClientError, Reply, problem};
use crate::model::{ATTACH_PROTOCOL, OUTPUT_LENGTH, OutputRequest};

/// A connection to the relay of a job.
#[derive(Debug)]
pub struct Attached {
    /// The connection. It does not block.
    pub stream: BlockingStream,
    /// The bytes that the relay has sent so far.
    pub received: Vec<u8>,
}

/// A part of an output file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputBytes {
    /// The bytes from the requested place on; as many as the daemon sends at once.
    pub bytes: Vec<u8>,
    /// The length of the whole file.
    pub length: u64,
}

impl Client {
    /// Attaches to the input or the terminal of a running job.
    ///
    /// # Errors
    /// As [`Client::submit`]; a refusal with the code `conflict` if the job does not run.
    pub fn attach(&self, job: i64) -> Reply<Attached> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("/v1/jobs/{job}/attach"))
            .header(header::HOST, "miserly")
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, ATTACH_PROTOCOL)
            .body(Full::new(Bytes::new()))
            .map_err(|error| self.unexpected(error))?;
        self.runtime.block_on(self.limited(self.reply_within, self.upgraded(request)))
    }

    async fn upgraded(&self, request: Request<Full<Bytes>>) -> Reply<Attached> {
        let reply = self.begin(request).await?;
        let status = reply.status();
        if status != StatusCode::SWITCHING_PROTOCOLS {
            let body = reply.into_body().collect().await.map_err(|error| self.gone(&error))?;
            return Err(problem(status, &body.to_bytes()).unwrap_or_else(|reason| self.unexpected(reason)));
        }
        let upgraded = upgrade::on(reply).await.map_err(|error| self.gone(&error))?;
        let parts = upgraded
            .downcast::<TokioIo<UnixStream>>()
            .map_err(|_| self.unexpected("the connection is of another kind"))?;
        let no_daemon = |error| ClientError::NoDaemon { socket: self.socket.clone(), error };
        let stream = parts.io.into_inner().into_std().map_err(no_daemon)?;
        Ok(Attached { stream, received: parts.read_buf.to_vec() })
    }

    /// Returns a part of an output file of a job.
    ///
    /// # Errors
    /// As [`Client::submit`]; a refusal with the code `not_found` if there is no file.
    pub fn output(&self, job: i64, part: &OutputRequest) -> Reply<OutputBytes> {
        let OutputRequest { from, error } = part;
        let request = self.request(
            Method::GET,
            &format!("/v1/jobs/{job}/output?from={from}&error={error}"),
            Bytes::new(),
        )?;
        self.runtime.block_on(self.limited(self.reply_within, async {
            let reply = self.begin(request).await?;
            let (status, head) = (reply.status(), reply.headers().get(OUTPUT_LENGTH).cloned());
            let body = reply.into_body().collect().await.map_err(|error| self.gone(&error))?.to_bytes();
            if !status.is_success() {
                return Err(problem(status, &body).unwrap_or_else(|reason| self.unexpected(reason)));
            }
            let length = head.and_then(|text| text.to_str().ok()?.parse().ok());
            let length = length.ok_or_else(|| self.unexpected("the length of the file is missing"))?;
            Ok(OutputBytes { bytes: body.to_vec(), length })
        }))
    }
}
