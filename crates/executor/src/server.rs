//! The executor: the process of root that replies to the requests of one daemon.

use std::env::args_os;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use miserly_api::model::Submission;
use miserly_cgroup::online_cpus;
use miserly_launch::{FoundAttempt, KillResult, Pam, Shim, shim};
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SendFlags, SocketType, sockopt};
use rustix::process::{setsid, umask};
use rustix::stdio::dup2_stdin;
use rustix::thread::set_name;

use crate::account::Accounts;
use crate::channel::Channel;
use crate::checks::LaunchChecks;
use crate::failure::{LaunchFailure, LaunchFailureKind, SealError};
use crate::gpus::{DeviceHider, HIDE_DEVICES, serve as serve_devices};
use crate::launch::{LaunchRequest, until};
use crate::message::{Numbered, Reply, Request, ResealRequest, Settings};
use crate::prepare::{ATTEMPTS, make_attempts, open_state};
use crate::program::Program;
use crate::seal::{Credential, Issue, wall_seconds};
use crate::syscall_filter;
use crate::used_seals::UsedSeals;
use crate::{AttemptId, Attempts, JobGroups, Key};

/// The number of requests that are processed at once. The daemon has fewer at a time.
const THREADS: usize = 12;
/// The longest time for which a request may wait for processes.
const LONGEST: Duration = Duration::from_secs(10);
/// The time for processes to die.
const PATIENCE: Duration = Duration::from_secs(1);

/// The sources of the parts that a daemon and its executor have in common.
const SOURCES: [&str; 9] = [
    include_str!("message.rs"),
    include_str!("launch.rs"),
    include_str!("queue_programs.rs"),
    include_str!("groups.rs"),
    include_str!("gpus.rs"),
    include_str!("failure.rs"),
    include_str!("channel.rs"),
    include_str!("server.rs"),
    include_str!("service.rs"),
];

/// Implements the program `miserly-executor`, which only a daemon calls. Standard input is its end of the socket pair.
pub fn main() -> ExitCode {
    let arguments: Vec<_> = args_os().skip(1).collect();
    let result = match arguments.as_slice() {
        [option] if option == "--identity" => {
            println!("{}", identity());
            Ok(())
        }
        [option] if option == HIDE_DEVICES => serve_devices(),
        [] => run(),
        _ => {
            eprintln!("usage: miserly-executor [--identity]; only miserly calls this program");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(&format_args!("{error}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns the identity of this build: that of its shim, and a hash of the sources that a daemon and its executor have in
/// common.
pub fn identity() -> String {
    format!("{}, executor {:016x}", shim::identity(), shim::hash(&SOURCES))
}

pub(crate) fn log(message: &dyn std::fmt::Display) {
    eprintln!("miserly-executor: {message}");
}

/// Replies to requests until the daemon closes its end.
fn run() -> io::Result<()> {
    // A signal from a terminal is for the daemon.
    let _ = setsid();
    // Otherwise it has that of its descriptor.
    let _ = set_name(c"miserly-exec");
    umask(Mode::RWXG | Mode::RWXO);
    std::env::set_current_dir("/")?;
    let channel = Channel::from_fd(io::stdin().as_fd().try_clone_to_owned()?)
        .map_err(|_| io::Error::other("standard input is no socket of a daemon"))?;
    dup2_stdin(File::open("/dev/null")?)?;
    let Some((Numbered { number, body }, fds)) = channel.receive()? else { return Ok(()) };
    let begun = begin(body, fds);
    // The settings are those of a daemon that has its rights. All that follows is not.
    if let Err(error) = syscall_filter::apply() {
        log(&format_args!("it can make all system calls of root: {error}"));
    }
    let (reply, server) = match begun {
        Ok((server, warnings)) => {
            let groups = server.attempts.groups.facts().cloned();
            (Reply::Begun { groups, warnings }, Some(server))
        }
        Err(problem) => (Reply::Failed(problem), None),
    };
    channel.send(&Numbered { number, body: reply }, &[], SendFlags::empty())?;
    if let Some(server) = server {
        serve(&server, &channel);
    }
    Ok(())
}

/// Replies to all requests. A launch under way is given up when the daemon closes its end: the next daemon finds its state.
fn serve(server: &Server, channel: &Channel) {
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some((Numbered { number, body }, fds)) = next(channel) {
                    let (body, fds) = server.reply(body, fds);
                    let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
                    // A daemon that is gone needs no reply.
                    let _ = channel.send(&Numbered { number, body }, &fds, SendFlags::empty());
                }
                std::process::exit(0);
            });
        }
    });
}

/// Returns the next request. Ends this process at a message that no daemon sends.
fn next(channel: &Channel) -> Option<(Numbered<Request>, Vec<OwnedFd>)> {
    channel.receive().unwrap_or_else(|error| {
        log(&format_args!("the daemon sent no message of this version: {error}"));
        std::process::exit(1);
    })
}

/// The executor of one daemon.
#[derive(Debug)]
struct Server {
    checks: LaunchChecks,
    accounts: Accounts,
    attempts: Attempts,
}

/// Begins with the settings of a daemon that still has its rights.
fn begin(request: Request, mut fds: Vec<OwnedFd>) -> Result<(Server, Vec<String>), String> {
    let (Request::Begin(settings), Some(shim)) = (request, fds.pop()) else {
        return Err("the first message has to be the settings".to_owned());
    };
    let Settings { state, uid, gid, socket, allow_root, rules, groups } = settings;
    let pam = rules.pam.as_deref().map(Pam::open).transpose().map_err(|error| error.to_string())?;
    let text = |path: PathBuf| move |error: io::Error| format!("{}: {error}", path.display());
    let opened = open_state(&state).map_err(text(state.clone()))?;
    let key = Key::open(&opened).map_err(text(state.clone()))?;
    let used = UsedSeals::open(&opened, wall_seconds()).map_err(text(state.clone()))?;
    make_attempts(&opened, gid).map_err(text(state.join(ATTEMPTS)))?;
    let (groups, warnings) = match groups {
        Some(groups) => JobGroups::open(&groups, DeviceHider::process),
        None => (JobGroups::none(), vec![]),
    };
    let attempts =
        Attempts { folder: state.join(ATTEMPTS), shim: Program::from_file(shim), socket, groups, rules };
    attempts.sweep_groups().map_err(|error| error.to_string())?;
    let checks = LaunchChecks { key, used };
    Ok((Server { checks, accounts: Accounts { allow_root, daemon: uid, pam }, attempts }, warnings))
}

impl Server {
    /// Carries out a request.
    fn reply(&self, request: Request, mut fds: Vec<OwnedFd>) -> (Reply, Vec<OwnedFd>) {
        let reply = match request {
            Request::Begin(_) => Reply::Refused("the executor has begun".to_owned()),
            Request::Seal(submission) => sealed(fds.pop(), |connection| self.seal(connection, &submission)),
            Request::Reseal(request) => sealed(fds.pop(), |connection| self.reseal(connection, &request)),
            Request::Launch(request) => match self.launch(&request) {
                Ok(shim) => return alive(shim),
                Err(failure) => {
                    log(&format_args!("job {}: {failure}", request.attempt.job));
                    Reply::NotLaunched(failure)
                }
            },
            Request::Find { attempt, .. }
            | Request::KillJob { attempt, .. }
            | Request::WakeShim(attempt)
            | Request::KillShim(attempt)
            | Request::Remove(attempt)
            | Request::EndPartition(attempt)
                if !attempt.is_valid() =>
            {
                Reply::Refused(format!("there is no attempt {}.{}", attempt.job, attempt.nth))
            }
            Request::Find { attempt, wait } => match self.attempts.find(attempt, until(wait.min(LONGEST))) {
                Ok(FoundAttempt::Alive(shim)) => return alive(shim),
                Ok(FoundAttempt::Ended(end)) => Reply::Ended(end),
                Ok(FoundAttempt::NeverRan) => Reply::NeverRan,
                Ok(FoundAttempt::Lost(lost)) => Reply::Lost(lost),
                Err(failure) => Reply::NotFound(failure),
            },
            Request::KillJob { attempt, wait } => {
                match self.attempts.kill_job(attempt, until(wait.min(LONGEST))) {
                    Ok(result) => Reply::Killed(result),
                    Err(error) => Reply::Failed(error.to_string()),
                }
            }
            Request::WakeShim(attempt) => done(self.attempts.wake_shim(attempt)),
            Request::KillShim(attempt) => self.kill_shim(attempt),
            Request::Remove(attempt) => self.remove(attempt),
            Request::EndPartition(attempt) => done(self.attempts.end_partition(attempt)),
            Request::KeepMemory(bytes) => done(self.attempts.groups.keep_memory(bytes)),
            Request::Confine(busy) => done(self.attempts.groups.confine(&busy)),
        };
        (reply, vec![])
    }

    /// Seals a submission of the user at the other end of a connection. Returns the text of a credential.
    fn seal(&self, connection: &OwnedFd, submission: &Submission) -> Result<String, SealError> {
        let unavailable = |error: &dyn ToString| SealError::Unavailable(error.to_string());
        let (uid, gid) = peer(connection).map_err(|error| unavailable(&error))?;
        let user = self.accounts.submitting_account(uid).map_err(|problem| {
            if problem.is_temporary() {
                unavailable(&problem)
            } else {
                SealError::Refused(problem.to_string())
            }
        })?;
        let issue = Issue::new().map_err(|error| unavailable(&error))?;
        let sealed = self.checks.key.seal(uid, gid, &user.name, submission, issue);
        let credential = sealed.map_err(|problem| SealError::Refused(problem.to_string()))?;
        serde_json::to_string(&credential).map_err(|error| unavailable(&error))
    }

    /// Seals the changed submission of a job. Only its user and root change what is sealed.
    fn reseal(&self, connection: &OwnedFd, request: &ResealRequest) -> Result<String, SealError> {
        let ResealRequest { credential: text, before, after } = request;
        let refused = |problem: &dyn ToString| SealError::Refused(problem.to_string());
        let unavailable = |error: &dyn ToString| SealError::Unavailable(error.to_string());
        let now = wall_seconds();
        if self.checks.key.verified(Some(text), after, now).is_ok() {
            return Ok(text.clone());
        }
        let Credential { uid, gid, user, issue, .. } =
            self.checks.key.verified(Some(text), before, now).map_err(|problem| refused(&problem))?;
        let (peer, _) = peer(connection).map_err(|error| unavailable(&error))?;
        if peer != uid && peer != 0 {
            let message =
                format!("only {user} and root change the queue, the memory or the GPUs of this job");
            return Err(refused(&message));
        }
        // The same number: it is one job, before and after.
        let issue = issue.map_or_else(Issue::new, Ok).map_err(|error| unavailable(&error))?;
        let sealed =
            self.checks.key.seal(uid, gid, &user, after, issue).map_err(|problem| refused(&problem))?;
        serde_json::to_string(&sealed).map_err(|error| unavailable(&error))
    }

    /// Launches an attempt as the user of the submission.
    fn launch(&self, request: &LaunchRequest) -> Result<Shim, LaunchFailure> {
        // Not those that this process may use: the confinement of other programs is also its own.
        let online = online_cpus().map_err(|error| LaunchFailure::new(LaunchFailureKind::Final, &error))?;
        let credential = self.checks.verified(request, &online, wall_seconds())?;
        let user = self.accounts.job_user(&credential).map_err(|problem| {
            let temporary = problem.is_temporary();
            let kind = if temporary { LaunchFailureKind::Temporary } else { LaunchFailureKind::Final };
            LaunchFailure::new(kind, &problem)
        })?;
        let (name, uid, queue) = (user.name.clone(), user.uid, &request.queue);
        self.note_last_end(request.attempt);
        // A job of root's has the rights of its shim.
        let user = Some(user).filter(|user| user.uid != 0);
        let launch = || self.attempts.launch(request, user);
        let (shim, kept) = self.checks.launch(request, &credential, launch)?;
        if let Err(error) = kept {
            log(&format_args!("the use of a credential cannot be written: {error}"));
        }
        let AttemptId { job, nth } = request.attempt;
        log(&format_args!(
            "audit: job {job}, attempt {nth}: started for {name:?} ({uid}) in queue {queue:?}"
        ));
        Ok(shim)
    }

    /// Kills a shim, if no process of its job is left.
    fn kill_shim(&self, attempt: AttemptId) -> Reply {
        match self.attempts.kill_job(attempt, until(PATIENCE)) {
            Ok(KillResult::All(_)) => done(self.attempts.kill_shim(attempt)),
            Ok(KillResult::Survivors(pids)) => Reply::Refused(format!("its processes {pids:?} live")),
            Err(error) => Reply::Failed(error.to_string()),
        }
    }

    /// Records the end of the attempt before this one, if its folder is still there.
    fn note_last_end(&self, AttemptId { job, nth }: AttemptId) {
        if nth > 1 {
            self.note_end(AttemptId { job, nth: nth - 1 });
        }
    }

    /// Records how an attempt has ended, if it has. A daemon need not ask for that.
    fn note_end(&self, attempt: AttemptId) {
        if let Ok(Some(end)) = self.attempts.end(attempt)
            && let Err(error) = self.checks.used.note_end(attempt, &end)
        {
            log(&format_args!("the end of job {} cannot be written: {error}", attempt.job));
        }
    }

    /// Removes the folder and the group of an attempt, unless its shim still needs them.
    fn remove(&self, attempt: AttemptId) -> Reply {
        match self.attempts.is_alive(attempt) {
            Ok(false) => {
                self.note_end(attempt);
                let folder = self.attempts.remove_folder(attempt);
                done(self.attempts.remove_group(attempt).and(folder))
            }
            Ok(true) => Reply::Refused("the attempt runs".to_owned()),
            Err(error) => Reply::Failed(error.to_string()),
        }
    }
}

fn done(result: io::Result<()>) -> Reply {
    result.map_or_else(|error| Reply::Failed(error.to_string()), |()| Reply::Done)
}

/// Returns the reply with the credential that `seal` makes for the client of a connection.
fn sealed(connection: Option<OwnedFd>, seal: impl FnOnce(&OwnedFd) -> Result<String, SealError>) -> Reply {
    match connection.map(|connection| seal(&connection)) {
        Some(Ok(credential)) => Reply::Sealed(credential),
        Some(Err(SealError::Refused(problem))) => Reply::Refused(problem),
        Some(Err(SealError::Unavailable(problem))) => Reply::Failed(problem),
        None => Reply::Refused("there is no connection".to_owned()),
    }
}

fn alive(shim: Shim) -> (Reply, Vec<OwnedFd>) {
    let (parts, connection, pidfd) = shim.into_parts();
    (Reply::Alive(parts), vec![connection, pidfd])
}

/// Returns user and group of the client of a connection.
///
/// The connection has to be the end that a server accepted. At the other end, the kernel names the listening user: a daemon
/// could connect to a socket of any user.
fn peer(connection: &OwnedFd) -> io::Result<(u32, u32)> {
    let refused = || io::Error::other("this is no connection of a client");
    let is_local = sockopt::socket_domain(connection)? == AddressFamily::UNIX;
    if !is_local || sockopt::socket_type(connection)? != SocketType::STREAM {
        return Err(refused());
    }
    // A socket that listens has a name, and a client has none.
    if !UnixStream::from(connection.try_clone()?).peer_addr()?.is_unnamed() {
        return Err(refused());
    }
    let peer = sockopt::socket_peercred(connection)?;
    Ok((peer.uid.as_raw(), peer.gid.as_raw()))
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    use rustix::process::{getegid, geteuid};

    use super::*;

    /// The connection to another user's socket would name that user.
    #[test]
    fn only_the_accepted_end_of_a_connection_names_a_client() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let abstract_name = SocketAddr::from_abstract_name(path.to_str().unwrap()).unwrap();
        let own = (geteuid().as_raw(), getegid().as_raw());
        for address in [SocketAddr::from_pathname(&path).unwrap(), abstract_name] {
            let listener = UnixListener::bind_addr(&address).unwrap();
            let client = UnixStream::connect_addr(&address).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            assert_eq!(peer(&accepted.into()).unwrap(), own);
            assert!(peer(&client.into()).is_err());
            assert!(peer(&listener.into()).is_err());
        }
        let (channel, _other) = Channel::pair().unwrap();
        assert!(peer(&channel.into_fd()).is_err());
        assert!(peer(&File::open("/dev/null").unwrap().into()).is_err());
    }
}
