//! The daemon's end: starts the executor, and sends it requests.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use miserly_api::model::Submission;
use miserly_launch::{FoundAttempt, KillResult, Shim, ShimParts, fault};
use rustix::net::SendFlags;

use crate::channel::Channel;
use crate::failure::{FindFailure, LaunchFailure, LaunchFailureKind, SealError};
use crate::message::{Numbered, Reply, Request, ResealRequest, Settings};
use crate::program::Program;
use crate::{AttemptId, GroupFacts, LaunchRequest};

/// The name of the process.
const NAME: &str = "miserly-executor";

/// An executor that was started.
#[derive(Debug)]
pub struct Started {
    /// The daemon's end of the socket pair, for [`Client::new`]. The executor ends when it is closed.
    pub socket: OwnedFd,
    /// What the kernel does for the control groups of jobs; `None` if they have none.
    pub groups: Option<GroupFacts>,
    /// One sentence for each thing that is missing.
    pub warnings: Vec<String>,
    /// The process. It ends with the socket.
    pub process: Child,
}

/// The reason why an executor did not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A system call failed.
    #[error("the executor cannot be started: {0}")]
    System(#[from] io::Error),
    /// It found a problem.
    #[error("the executor does not begin: {0}")]
    Problem(String),
}

/// Starts the executor. Its shims are the program `shim`.
///
/// # Errors
/// It cannot be started, or finds a problem with the settings.
pub fn start(program: &Program, settings: Settings, shim: &Program) -> Result<Started, StartError> {
    let (ours, theirs) = Channel::pair()?;
    let mut command = Command::new(program.path());
    command.arg0(NAME).env_clear().stdin(theirs.into_fd()).stdout(Stdio::null());
    fault::pass_on(&mut command);
    let process = command.spawn()?;
    // It holds the other end, which has to close when the executor ends.
    drop(command);
    let file = shim.open_file()?;
    let request = Numbered { number: 0, body: Request::Begin(settings) };
    ours.send(&request, &[file.as_fd()], SendFlags::empty())?;
    match ours.receive::<Numbered<Reply>>()? {
        Some((Numbered { body: Reply::Begun { groups, warnings }, .. }, _)) => {
            Ok(Started { socket: ours.into_fd(), groups, warnings, process })
        }
        Some((Numbered { body: Reply::Failed(problem), .. }, _)) => Err(StartError::Problem(problem)),
        Some(_) => Err(StartError::Problem("its first reply is another one".to_owned())),
        None => Err(StartError::Problem("it has ended".to_owned())),
    }
}

/// A client of an executor. Clones share the connection.
#[derive(Clone, Debug)]
pub struct Client(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    channel: Channel,
    /// The folder of the attempts.
    attempts: PathBuf,
    waiting: Mutex<Waiting>,
}

/// The requests without a reply. The lock is held for a few instructions.
#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    replies: BTreeMap<u64, SyncSender<(Reply, Vec<OwnedFd>)>>,
    has_ended: bool,
}

impl Client {
    /// Begins to send requests over a socket of [`start`]. `attempts` is the folder of the attempts. Calls `ended` in a thread
    /// of its own when the executor has ended.
    ///
    /// # Errors
    /// No thread is left, or this is no such socket.
    pub fn new(
        socket: OwnedFd,
        attempts: PathBuf,
        ended: impl FnOnce() + Send + 'static,
    ) -> io::Result<Client> {
        let channel = Channel::from_fd(socket)?;
        let client = Client(Arc::new(Shared { channel, attempts, waiting: Mutex::default() }));
        let reader = client.clone();
        thread::Builder::new().name("executor".to_owned()).spawn(move || {
            reader.receive_replies();
            ended();
        })?;
        Ok(client)
    }

    /// Returns the folder of the attempts.
    pub fn attempts(&self) -> &Path {
        &self.0.attempts
    }

    /// Seals a submission of the user at the other end of a connection. Returns the text of a credential.
    ///
    /// # Errors
    /// [`SealError`].
    pub fn seal(&self, connection: BorrowedFd<'_>, submission: &Submission) -> Result<String, SealError> {
        self.sealed(Request::Seal(Box::new(submission.clone())), connection)
    }

    /// Seals the changed submission of a job for the user at the other end of a connection. Returns the text of a credential.
    ///
    /// # Errors
    /// [`SealError`].
    pub fn reseal(&self, connection: BorrowedFd<'_>, request: ResealRequest) -> Result<String, SealError> {
        self.sealed(Request::Reseal(Box::new(request)), connection)
    }

    fn sealed(&self, request: Request, connection: BorrowedFd<'_>) -> Result<String, SealError> {
        match self.request(request, &[connection]) {
            Ok((Reply::Sealed(credential), _)) => Ok(credential),
            Ok((Reply::Refused(problem), _)) => Err(SealError::Refused(problem)),
            other => Err(SealError::Unavailable(problem(other))),
        }
    }

    /// Launches an attempt.
    ///
    /// # Errors
    /// The launch failed, or the rules forbid it.
    pub fn launch(&self, request: &LaunchRequest) -> Result<Shim, LaunchFailure> {
        let failed = |kind, error: &dyn Display| LaunchFailure { kind, message: error.to_string() };
        match self.request(Request::Launch(Box::new(request.clone())), &[]) {
            Ok((Reply::Alive(parts), fds)) => self
                .shim(request.attempt, parts, fds)
                // It runs: whoever finds it takes it up.
                .map_err(|error| failed(LaunchFailureKind::Temporary, &error)),
            Ok((Reply::NotLaunched(failure), _)) => Err(failure),
            Ok((Reply::Refused(problem), _)) => Err(failed(LaunchFailureKind::Final, &problem)),
            other => Err(failed(LaunchFailureKind::Temporary, &problem(other))),
        }
    }

    /// Returns the state of an attempt. The executor waits at most for this time.
    ///
    /// # Errors
    /// As [`Attempts::find`](crate::Attempts::find).
    pub fn find(&self, attempt: AttemptId, wait: Duration) -> Result<FoundAttempt, FindFailure> {
        match self.request(Request::Find { attempt, wait }, &[]) {
            Ok((Reply::Alive(parts), fds)) => {
                let shim = self.shim(attempt, parts, fds);
                shim.map(FoundAttempt::Alive).map_err(|error| FindFailure::Temporary(error.to_string()))
            }
            Ok((Reply::Ended(end), _)) => Ok(FoundAttempt::Ended(end)),
            Ok((Reply::NeverRan, _)) => Ok(FoundAttempt::NeverRan),
            Ok((Reply::Lost(lost), _)) => Ok(FoundAttempt::Lost(lost)),
            Ok((Reply::NotFound(failure), _)) => Err(failure),
            other => Err(FindFailure::Temporary(problem(other))),
        }
    }

    /// Kills all processes of an attempt but its shim. The executor waits at most for this time.
    ///
    /// # Errors
    /// As [`Attempts::kill_job`](crate::Attempts::kill_job).
    pub fn kill_job(&self, attempt: AttemptId, wait: Duration) -> io::Result<KillResult> {
        match self.request(Request::KillJob { attempt, wait }, &[]) {
            Ok((Reply::Killed(result), _)) => Ok(result),
            other => Err(io::Error::other(problem(other))),
        }
    }

    /// Continues the shim of an attempt. Does not wait for it.
    ///
    /// # Errors
    /// The executor does not take requests now.
    pub fn wake_shim(&self, attempt: AttemptId) -> io::Result<()> {
        self.post(Request::WakeShim(attempt))
    }

    /// Kills the shim of an attempt whose job has no process left. Does not wait for it.
    ///
    /// # Errors
    /// The executor does not take requests now.
    pub fn kill_shim(&self, attempt: AttemptId) -> io::Result<()> {
        self.post(Request::KillShim(attempt))
    }

    /// Removes the folder and the control group of an attempt that is over.
    ///
    /// # Errors
    /// The attempt runs, or a file cannot be removed.
    pub fn remove(&self, attempt: AttemptId) -> io::Result<()> {
        match self.request(Request::Remove(attempt), &[]) {
            Ok((Reply::Done, _)) => Ok(()),
            other => Err(io::Error::other(problem(other))),
        }
    }

    /// Gives the processors of an attempt that has ended back to other programs, without a wait.
    ///
    /// # Errors
    /// The executor takes no requests now.
    pub fn end_partition(&self, attempt: AttemptId) -> io::Result<()> {
        self.post(Request::EndPartition(attempt))
    }

    /// Keeps this memory for jobs, in bytes.
    ///
    /// # Errors
    /// A group above those of jobs keeps less.
    pub fn keep_memory(&self, bytes: u64) -> io::Result<()> {
        match self.request(Request::KeepMemory(bytes), &[]) {
            Ok((Reply::Done, _)) => Ok(()),
            other => Err(io::Error::other(problem(other))),
        }
    }

    /// Keeps other programs off these processors, and off no others.
    ///
    /// # Errors
    /// systemd refuses it or does not answer.
    pub fn confine(&self, busy: Vec<u32>) -> io::Result<()> {
        match self.request(Request::Confine(busy), &[]) {
            Ok((Reply::Done, _)) => Ok(()),
            other => Err(io::Error::other(problem(other))),
        }
    }

    fn shim(&self, attempt: AttemptId, parts: ShimParts, fds: Vec<OwnedFd>) -> io::Result<Shim> {
        let [connection, pidfd] = <[OwnedFd; 2]>::try_from(fds)
            .map_err(|_| io::Error::other("the executor sent no connection to the shim"))?;
        Shim::from_parts(&attempt.folder(&self.0.attempts), parts, connection, pidfd)
    }

    /// Sends a request and waits for its reply.
    fn request(&self, body: Request, fds: &[BorrowedFd<'_>]) -> io::Result<(Reply, Vec<OwnedFd>)> {
        let (sender, reply) = sync_channel(1);
        let number = {
            let mut waiting = self.waiting();
            if waiting.has_ended {
                return Err(ended());
            }
            waiting.last += 1;
            let number = waiting.last;
            waiting.replies.insert(number, sender);
            number
        };
        if let Err(error) = self.0.channel.send(&Numbered { number, body }, fds, SendFlags::empty()) {
            self.waiting().replies.remove(&number);
            return Err(error);
        }
        reply.recv().map_err(|_| ended())
    }

    /// Sends a request whose reply does not matter, without a wait.
    fn post(&self, body: Request) -> io::Result<()> {
        let number = {
            let mut waiting = self.waiting();
            waiting.last += 1;
            waiting.last
        };
        self.0.channel.send(&Numbered { number, body }, &[], SendFlags::DONTWAIT)
    }

    /// Passes replies on until the executor ends.
    fn receive_replies(&self) {
        while let Ok(Some((Numbered { number, body }, fds))) = self.0.channel.receive::<Numbered<Reply>>() {
            let waiting = self.waiting().replies.remove(&number);
            // Without one, the reply is to a request that needs none.
            if let Some(waiting) = waiting {
                let _ = waiting.send((body, fds));
            }
        }
        let mut waiting = self.waiting();
        waiting.has_ended = true;
        waiting.replies.clear();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the executor has ended")
}

/// Returns the problem of a reply that is not the expected one.
fn problem(reply: io::Result<(Reply, Vec<OwnedFd>)>) -> String {
    match reply {
        Ok((Reply::Refused(problem) | Reply::Failed(problem), _)) => problem,
        Ok((reply, _)) => format!("the executor sent another reply: {reply:?}"),
        Err(error) => error.to_string(),
    }
}
