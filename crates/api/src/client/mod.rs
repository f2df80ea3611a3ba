//! A blocking client: each request has a connection of its own.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};

use crate::model::{
    BeginStepRequest, CancelRequest, ChangeRequest, ChangedJobs, DrainRequest, EndStepRequest, ExtendRequest,
    Filter, HoldStartsRequest, JobChange, JobIds, JobView, LimitsReport, Modification, ModifyRequest, Moves,
    Pools, Problem, Quote, RemoveReservation, Reservation, ResizeRequest, ShadowFilter, ShadowReport,
    SignalRequest, Status, StepNumber, Submission, Submitted, TakeBackRequest, WhatIf, WhatIfAnswer, listing,
};

mod find;

mod attach;

mod events;

pub use attach::{Attached, OutputBytes};
pub use find::{DaemonSocket, NoSocket, find, named_socket};

/// The time after which a submission without a reply is repeated: a daemon that was killed may be back.
const REPEAT_AFTER: Duration = Duration::from_secs(1);

/// The time limit of a reply, except for the end of a job.
const REPLY_WITHIN: Duration = Duration::from_mins(1);

/// The reason why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No daemon listens on the socket.
    #[error(
        "no daemon answers on {}: {error}; start one with `miserly daemon`, or say where it is with --socket or \
         MISERLY_SOCKET",
        .socket.display()
    )]
    NoDaemon {
        /// The socket.
        socket: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The daemon rejected the request.
    #[error(transparent)]
    Refused(#[from] Problem),
    /// The daemon went away before it replied.
    #[error("the daemon on {} went away before it answered ({reason}); jobs run on without it", .socket.display())]
    Gone {
        /// Its socket.
        socket: PathBuf,
        /// The failure of the connection.
        reason: String,
    },
    /// The daemon does not reply.
    #[error(
        "the daemon on {} does not answer within {} s; it is stopped or overloaded, and may still carry out the request", .socket.display(), .within.as_secs()
    )]
    Silent {
        /// Its socket.
        socket: PathBuf,
        /// The time limit.
        within: Duration,
    },
    /// Another user's process listens on a socket that the user did not name.
    #[error(
        "{}: a process of user {uid} listens there, and not one of yours or of root; name the socket with --socket \
         if you trust that user",
        .socket.display()
    )]
    Untrusted {
        /// The socket.
        socket: PathBuf,
        /// The user, by number.
        uid: u32,
    },
    /// The reply is not one of this version.
    #[error("{} does not speak as this version of miserly does: {reason}", .socket.display())]
    Unexpected {
        /// Its socket.
        socket: PathBuf,
        /// The problem.
        reason: String,
    },
}

/// A client of one daemon.
#[derive(Debug)]
pub struct Client {
    socket: PathBuf,
    /// Whether the daemon may be any user's.
    any_user: bool,
    reply_within: Duration,
    runtime: Runtime,
}

type Reply<T> = Result<T, ClientError>;

impl Client {
    /// Returns a client of the daemon on a socket that the user named. The daemon may be any user's.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn new(socket: PathBuf) -> std::io::Result<Client> {
        Client::from_socket(DaemonSocket { path: socket, named: true })
    }

    /// Returns a client of the daemon on a socket.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn from_socket(socket: DaemonSocket) -> std::io::Result<Client> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let DaemonSocket { path, named } = socket;
        Ok(Client { socket: path, any_user: named, reply_within: REPLY_WITHIN, runtime })
    }

    /// Returns the client with another time limit for replies. The end of a job has none.
    #[must_use]
    pub fn with_reply_within(self, limit: Duration) -> Client {
        Client { reply_within: limit, ..self }
    }

    /// Returns the socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Submits a job or an array of jobs.
    ///
    /// A submission without a `request_id` gets a random one. If the daemon goes away before it replies, the request is
    /// repeated once, and the daemon recognises it.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the daemon's reason. Any other error means that there is no
    /// reply.
    pub fn submit(&self, submission: &Submission) -> Reply<Submitted> {
        let id = submission.request_id.clone().unwrap_or_else(random_id);
        let named = Submission { request_id: Some(id), ..submission.clone() };
        match self.post("/v1/jobs", &named) {
            Err(lost @ ClientError::Gone { .. }) => {
                std::thread::sleep(REPEAT_AFTER);
                match self.post("/v1/jobs", &named) {
                    // Whether the job was submitted is not known.
                    Err(ClientError::NoDaemon { .. }) => Err(lost),
                    repeated => repeated,
                }
            }
            reply => reply,
        }
    }

    /// Returns the promises that a submission would get now.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn quote(&self, submission: &Submission) -> Reply<Quote> {
        self.post("/v1/quote", submission)
    }

    /// Returns how starts would change with a change of a queue.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn what_if(&self, question: &WhatIf) -> Reply<WhatIfAnswer> {
        self.post("/v1/what-if", question)
    }

    /// Returns what other policies would have done with the jobs that were submitted from an instant on.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn shadow(&self, filter: &ShadowFilter) -> Reply<ShadowReport> {
        let since =
            filter.since.map_or_else(String::new, |since| format!("?since={}", escaped(&since.to_string())));
        self.get(&format!("/v1/shadow{since}"))
    }

    /// Returns all unfinished jobs that a filter admits, by number, in as many pages as it takes. Of the
    /// ended ones it returns the first page. A filter with a limit or a start gives one page.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn all_jobs(&self, filter: &Filter) -> Reply<Vec<JobView>> {
        let mut jobs = self.jobs(filter)?;
        if filter.limit.is_some() || filter.after.is_some() {
            return Ok(jobs);
        }
        let live = |jobs: &[JobView]| {
            let live: Vec<i64> =
                jobs.iter().filter(|job| job.phase.ended().is_none()).map(|job| job.number).collect();
            live.last().copied().filter(|_| live.len() >= listing::PAGE as usize)
        };
        let mut after = live(&jobs);
        while after.is_some() {
            let page = self.jobs(&Filter { all: false, after, ..filter.clone() })?;
            after = live(&page);
            jobs.extend(page);
        }
        jobs.sort_by_key(|job| job.number);
        jobs.dedup_by_key(|job| job.number);
        Ok(jobs)
    }

    /// Passes all jobs that a filter admits to `on_page`, by number from its start on, until that breaks. The limit of the filter
    /// does not count: the pages are as large as they may be.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn each_page(
        &self,
        filter: &Filter,
        mut on_page: impl FnMut(Vec<JobView>) -> ControlFlow<()>,
    ) -> Reply<()> {
        let mut after = filter.after.unwrap_or(0);
        loop {
            let page = Filter { after: Some(after), limit: Some(listing::MOST), ..filter.clone() };
            let page = self.jobs(&page)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.number;
            if on_page(page).is_break() {
                return Ok(());
            }
        }
    }

    /// Returns one page of jobs, by number.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn jobs(&self, filter: &Filter) -> Reply<Vec<JobView>> {
        self.get(&format!("/v1/jobs{}", query(filter)))
    }

    /// Returns a job.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn job(&self, job: i64) -> Reply<JobView> {
        self.get(&format!("/v1/jobs/{job}"))
    }

    /// Returns a job once it has finished.
    ///
    /// # Errors
    /// As [`Client::submit`]; [`ClientError::Gone`] if the daemon goes away before the job has
    /// ended.
    pub fn wait(&self, job: i64) -> Reply<JobView> {
        self.exchange(Method::GET, &format!("/v1/jobs/{job}/wait"), Bytes::new(), Duration::MAX)
    }

    /// Changes several jobs by one request. The reply lists those that were refused.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn change_jobs(&self, request: &ChangeRequest) -> Reply<ChangedJobs> {
        self.post("/v1/jobs/change", request)
    }

    /// Cancels a job, or all jobs of an array.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn cancel(&self, job: i64, array: bool) -> Reply<JobIds> {
        self.post(&format!("/v1/jobs/{job}/cancel"), &CancelRequest { array })
    }

    /// Holds a waiting job. With `move_promises`, promises to jobs that wait for it are broken.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn hold(&self, job: i64, move_promises: bool) -> Reply<JobIds> {
        self.post(&format!("/v1/jobs/{job}/hold"), &TakeBackRequest { move_promises })
    }

    /// Releases a held job.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn release(&self, job: i64) -> Reply<JobIds> {
        self.post_empty(&format!("/v1/jobs/{job}/release"))
    }

    /// Ends a running job and runs it again. With `move_promises`, promises to jobs that wait for it may be broken.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn requeue(&self, job: i64, move_promises: bool) -> Reply<JobIds> {
        self.post(&format!("/v1/jobs/{job}/requeue"), &TakeBackRequest { move_promises })
    }

    /// Extends the time limit of a job by seconds.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn extend(&self, job: i64, by: f64) -> Reply<JobView> {
        self.post(&format!("/v1/jobs/{job}/extend"), &ExtendRequest { by })
    }

    /// Changes the most processors that a resizable job wants.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn resize(&self, job: i64, cpus: u64) -> Reply<JobIds> {
        self.post(&format!("/v1/jobs/{job}/resize"), &ResizeRequest { cpus })
    }

    /// Records the start of a step of a running job. Returns its number.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn begin_step(&self, job: i64, step: &BeginStepRequest) -> Reply<StepNumber> {
        self.post(&format!("/v1/jobs/{job}/steps"), step)
    }

    /// Records the end of a step of a running job.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn end_step(&self, job: i64, step: &EndStepRequest) -> Reply<StepNumber> {
        self.post(&format!("/v1/jobs/{job}/steps/end"), step)
    }

    /// Sends a signal to the processes of a running job.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn signal(&self, job: i64, signal: &SignalRequest) -> Reply<JobIds> {
        self.post(&format!("/v1/jobs/{job}/signal"), signal)
    }

    /// Stops the processes of a job in its window.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn pause(&self, job: i64) -> Reply<JobIds> {
        self.post_empty(&format!("/v1/jobs/{job}/pause"))
    }

    /// Lets the processes of a paused job continue.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn resume(&self, job: i64) -> Reply<JobIds> {
        self.post_empty(&format!("/v1/jobs/{job}/resume"))
    }

    /// Changes a waiting job. With `move_promises`, promises to jobs that wait for it may be broken. Returns the promises that moved.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn modify(&self, job: i64, changes: &Modification, move_promises: bool) -> Reply<Moves> {
        let body = ModifyRequest { changes: changes.clone(), move_promises };
        self.post(&format!("/v1/jobs/{job}/modify"), &body)
    }

    /// Changes a job, and breaks no promise to jobs that wait for it. Of an array only this job changes.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn change(&self, job: i64, change: &JobChange) -> Reply<()> {
        match change {
            JobChange::Cancel => self.cancel(job, false).map(drop),
            JobChange::Hold => self.hold(job, false).map(drop),
            JobChange::Release => self.release(job).map(drop),
            JobChange::Requeue => self.requeue(job, false).map(drop),
            JobChange::Extend(by) => self.extend(job, *by).map(drop),
            JobChange::Modify(changes) => self.modify(job, changes, false).map(drop),
        }
    }

    /// Returns the promises that a change of a job would move. Nothing changes.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn preview(&self, job: i64, change: &JobChange) -> Reply<Moves> {
        self.post(&format!("/v1/jobs/{job}/preview"), change)
    }

    /// Returns the free capacity of the pools.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn pools(&self) -> Reply<Pools> {
        self.get("/v1/pools")
    }

    /// Reserves a part of a pool. Returns the reservation as it was made.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn reserve(&self, reservation: &Reservation) -> Reply<Vec<Reservation>> {
        self.post("/v1/reservations", reservation)
    }

    /// Returns the reservations, by their next time.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn reservations(&self) -> Reply<Vec<Reservation>> {
        self.get("/v1/reservations")
    }

    /// Removes a reservation without unfinished jobs. Returns it.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn remove_reservation(&self, name: &str) -> Reply<Vec<Reservation>> {
        self.post("/v1/reservations/remove", &RemoveReservation { name: name.to_owned() })
    }

    /// Returns the limits of the user, and their use.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn limits(&self) -> Reply<LimitsReport> {
        self.get("/v1/limits")
    }

    /// Returns the state of the daemon.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn status(&self) -> Reply<Status> {
        self.get("/v1/status")
    }

    /// Returns the metrics of the daemon, as `OpenMetrics` text.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn metrics(&self) -> Reply<String> {
        let text = self.answer(self.request(Method::GET, "/v1/metrics", Bytes::new())?, self.reply_within)?;
        String::from_utf8(text.into()).map_err(|error| self.unexpected(error))
    }

    /// Lets the daemon reject new jobs, or accept them again.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn drain(&self, on: bool) -> Reply<JobIds> {
        self.post("/v1/drain", &DrainRequest { on })
    }

    /// Withdraws all shims that wait for windows, so that nothing starts without the daemon; or ends that.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn hold_starts(&self, on: bool) -> Reply<JobIds> {
        self.post("/v1/hold-starts", &HoldStartsRequest { on })
    }

    /// Returns the process that listens on the socket, as the kernel identifies it.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn process(&self) -> Reply<i32> {
        let connect = async {
            let no_daemon = |error| ClientError::NoDaemon { socket: self.socket.clone(), error };
            let stream = UnixStream::connect(&self.socket).await.map_err(no_daemon)?;
            self.check_server(&stream)?;
            let unknown = "the kernel does not name the process of the daemon";
            stream.peer_cred().map_err(no_daemon)?.pid().ok_or_else(|| self.unexpected(unknown))
        };
        self.runtime.block_on(self.limited(self.reply_within, connect))
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Reply<T> {
        self.exchange(Method::GET, path, Bytes::new(), self.reply_within)
    }

    fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Reply<T> {
        let body = serde_json::to_vec(body).map_err(|error| self.unexpected(error))?;
        self.exchange(Method::POST, path, body.into(), self.reply_within)
    }

    fn post_empty<T: DeserializeOwned>(&self, path: &str) -> Reply<T> {
        self.exchange(Method::POST, path, Bytes::new(), self.reply_within)
    }

    fn exchange<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        within: Duration,
    ) -> Reply<T> {
        let request = self.request(method, path, body)?;
        let answer = self.answer(request, within)?;
        serde_json::from_slice(&answer).map_err(|error| self.unexpected(error))
    }

    /// Returns the body of a successful reply.
    fn answer(&self, request: Request<Full<Bytes>>, within: Duration) -> Reply<Bytes> {
        let (status, answer) = self.runtime.block_on(self.limited(within, self.send(request)))?;
        if status.is_success() {
            Ok(answer)
        } else {
            Err(problem(status, &answer).unwrap_or_else(|reason| self.unexpected(reason)))
        }
    }

    /// Returns the output of `reply` within a time limit.
    async fn limited<T>(&self, within: Duration, reply: impl Future<Output = Reply<T>>) -> Reply<T> {
        let silent = |_| ClientError::Silent { socket: self.socket.clone(), within };
        tokio::time::timeout(within, reply).await.map_err(silent)?
    }

    /// Checks that the process that listens on the socket is the user's own or root's, or that of a user to whom root gave
    /// the folder of the socket. A socket that the user named may be any user's.
    fn check_server(&self, stream: &UnixStream) -> Reply<()> {
        let no_daemon = |error| ClientError::NoDaemon { socket: self.socket.clone(), error };
        let uid = stream.peer_cred().map_err(no_daemon)?.uid();
        let is_own = uid == 0 || uid == rustix::process::geteuid().as_raw();
        if self.any_user || is_own || find::is_given_by_root(&self.socket, uid) {
            return Ok(());
        }
        Err(ClientError::Untrusted { socket: self.socket.clone(), uid })
    }

    fn request(&self, method: Method, path: &str, body: Bytes) -> Reply<Request<Full<Bytes>>> {
        Request::builder()
            .method(method)
            .uri(path)
            .header("host", "miserly")
            .header("content-type", "application/json")
            .body(Full::new(body))
            .map_err(|error| self.unexpected(error))
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Reply<(StatusCode, Bytes)> {
        let answer = self.begin(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(|error| self.gone(&error))?;
        Ok((status, body.to_bytes()))
    }

    /// Returns a reply whose body may be on its way.
    async fn begin(&self, request: Request<Full<Bytes>>) -> Reply<Response<Incoming>> {
        let no_daemon = |error| ClientError::NoDaemon { socket: self.socket.clone(), error };
        let stream = UnixStream::connect(&self.socket).await.map_err(no_daemon)?;
        self.check_server(&stream)?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.gone(&error))?;
        // It ends with the reply, which also reports its failure.
        tokio::spawn(connection.with_upgrades());
        sender.send_request(request).await.map_err(|error| self.gone(&error))
    }

    fn gone(&self, error: &hyper::Error) -> ClientError {
        ClientError::Gone { socket: self.socket.clone(), reason: error.to_string() }
    }

    fn unexpected(&self, reason: impl Into<Box<dyn std::error::Error>>) -> ClientError {
        ClientError::Unexpected { socket: self.socket.clone(), reason: reason.into().to_string() }
    }
}

/// Returns the error of a reply with this status, or why it has none.
fn problem(status: StatusCode, answer: &[u8]) -> Result<ClientError, String> {
    let problem: Result<Problem, _> = serde_json::from_slice(answer);
    problem.map(ClientError::from).map_err(|_| format!("status {status} without a reason"))
}

/// Returns 128 random bits as text.
fn random_id() -> String {
    // The standard library seeds each state from the system.
    let draw = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", draw(), draw())
}

/// Returns a filter as a query string.
fn query(filter: &Filter) -> String {
    let Filter { all, uid, queue, array, limit, after, details } = filter;
    let mut query = format!("?all={all}");
    let numbers =
        [("uid", uid.map(i64::from)), ("array", *array), ("limit", limit.map(i64::from)), ("after", *after)];
    for (name, value) in numbers {
        query.extend(value.map(|value| format!("&{name}={value}")));
    }
    if *details {
        query.push_str("&details=true");
    }
    query.extend(queue.as_deref().map(|queue| format!("&queue={}", escaped(queue))));
    query
}

/// Returns a text with all reserved characters escaped.
fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}
