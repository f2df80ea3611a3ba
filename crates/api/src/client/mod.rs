//! A small client, for commands: one request after the other, each on a connection of its own.

use std::path::{Path, PathBuf};

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};

use crate::model::{
    CancelRequest, DrainRequest, ExtendRequest, Filter, JobIds, JobView, Pools, Problem, Quote, Status,
    Submission, Submitted,
};

mod find;

pub use find::{NoSocket, find, named_socket};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody is there.
    #[error(
        "no daemon answers on {}: {error}; start one with `miserly daemon`, or say where it is with --socket or \
         MISERLY_SOCKET",
        .socket.display()
    )]
    NoDaemon {
        /// Where it was looked for.
        socket: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The daemon says no.
    #[error(transparent)]
    Refused(#[from] Problem),
    /// The daemon was there, and went away before it had answered.
    #[error("the daemon on {} went away before it answered ({reason}); jobs run on without it", .socket.display())]
    Gone {
        /// Its socket.
        socket: PathBuf,
        /// What happened to the connection.
        reason: String,
    },
    /// What it says makes no sense.
    #[error("{} does not speak as this version of miserly does: {reason}", .socket.display())]
    Strange {
        /// Its socket.
        socket: PathBuf,
        /// What was wrong.
        reason: String,
    },
}

/// Whoever asks a daemon.
#[derive(Debug)]
pub struct Client {
    socket: PathBuf,
    runtime: Runtime,
}

type Answer<T> = Result<T, ClientError>;

impl Client {
    /// A client of the daemon on a socket. Nothing is asked yet.
    ///
    /// # Errors
    /// If the system has no more descriptors for us.
    pub fn new(socket: PathBuf) -> std::io::Result<Client> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        Ok(Client { socket, runtime })
    }

    /// Where the daemon is.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Asks for a job, or an array of them.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the daemon's reason; the others where there is no answer. So it is with every question.
    pub fn submit(&self, submission: &Submission) -> Answer<Submitted> {
        self.post("/v1/jobs", submission)
    }

    /// What a submission would be promised now.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn quote(&self, submission: &Submission) -> Answer<Quote> {
        self.post("/v1/quote", submission)
    }

    /// Jobs, by number.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn jobs(&self, filter: &Filter) -> Answer<Vec<JobView>> {
        self.get(&format!("/v1/jobs{}", query(filter)))
    }

    /// One job.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn job(&self, job: i64) -> Answer<JobView> {
        self.get(&format!("/v1/jobs/{job}"))
    }

    /// One job, once it has ended.
    ///
    /// # Errors
    /// As [`Client::submit`]; [`ClientError::Gone`] if the daemon goes away before the job has ended.
    pub fn wait(&self, job: i64) -> Answer<JobView> {
        self.get(&format!("/v1/jobs/{job}/wait"))
    }

    /// Ends a job or takes it back, or all of its array.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn cancel(&self, job: i64, array: bool) -> Answer<JobIds> {
        self.post(&format!("/v1/jobs/{job}/cancel"), &CancelRequest { array })
    }

    /// Keeps a waiting job from running.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn hold(&self, job: i64) -> Answer<JobIds> {
        self.order(&format!("/v1/jobs/{job}/hold"))
    }

    /// Lets a held job run again.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn release(&self, job: i64) -> Answer<JobIds> {
        self.order(&format!("/v1/jobs/{job}/release"))
    }

    /// Ends a running job and runs it again.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn requeue(&self, job: i64) -> Answer<JobIds> {
        self.order(&format!("/v1/jobs/{job}/requeue"))
    }

    /// Makes a job's window longer by seconds.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn extend(&self, job: i64, by: f64) -> Answer<JobView> {
        self.post(&format!("/v1/jobs/{job}/extend"), &ExtendRequest { by })
    }

    /// The pools from now on.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn pools(&self) -> Answer<Pools> {
        self.get("/v1/pools")
    }

    /// How the daemon is.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn status(&self) -> Answer<Status> {
        self.get("/v1/status")
    }

    /// Lets the daemon accept no new jobs, or go on.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn drain(&self, on: bool) -> Answer<JobIds> {
        self.post("/v1/drain", &DrainRequest { on })
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Answer<T> {
        self.exchange(Method::GET, path, Bytes::new())
    }

    fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Answer<T> {
        let body = serde_json::to_vec(body).map_err(|error| self.strange(error))?;
        self.exchange(Method::POST, path, body.into())
    }

    fn order<T: DeserializeOwned>(&self, path: &str) -> Answer<T> {
        self.exchange(Method::POST, path, Bytes::new())
    }

    fn exchange<T: DeserializeOwned>(&self, method: Method, path: &str, body: Bytes) -> Answer<T> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "miserly")
            .header("content-type", "application/json")
            .body(Full::new(body))
            .map_err(|error| self.strange(error))?;
        let (status, answer) = self.runtime.block_on(self.send(request))?;
        if status.is_success() {
            serde_json::from_slice(&answer).map_err(|error| self.strange(error))
        } else {
            let problem: Problem = serde_json::from_slice(&answer)
                .map_err(|_| self.strange(format!("status {status} without a reason")))?;
            Err(problem.into())
        }
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Answer<(StatusCode, Bytes)> {
        let nobody = |error| ClientError::NoDaemon { socket: self.socket.clone(), error };
        let gone = |error: hyper::Error| ClientError::Gone {
            socket: self.socket.clone(),
            reason: error.to_string(),
        };
        let stream = UnixStream::connect(&self.socket).await.map_err(nobody)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(gone)?;
        // It ends with the answer; what goes wrong with it, the answer says.
        tokio::spawn(connection);
        let answer = sender.send_request(request).await.map_err(gone)?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(gone)?;
        Ok((status, body.to_bytes()))
    }

    fn strange(&self, reason: impl Into<Box<dyn std::error::Error>>) -> ClientError {
        ClientError::Strange { socket: self.socket.clone(), reason: reason.into().to_string() }
    }
}

/// A filter as the query of an address.
fn query(filter: &Filter) -> String {
    let Filter { all, uid, queue, array, limit } = filter;
    let mut query = format!("?all={all}");
    let numbers = [("uid", uid.map(i64::from)), ("array", *array), ("limit", limit.map(i64::from))];
    for (name, value) in numbers {
        query.extend(value.map(|value| format!("&{name}={value}")));
    }
    query.extend(queue.as_deref().map(|queue| format!("&queue={}", escaped(queue))));
    query
}

/// A text with everything escaped that could mean something in an address.
fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}
