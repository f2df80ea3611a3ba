//! The executor as a service of its own, for a daemon that never had the rights of root.
//!
//! The service listens at a socket that only the daemon's user can reach. A daemon that connects gets one end of a socket
//! pair: the executor at the other end was started for it, with settings that root has read. Nothing that the daemon sends
//! is read here.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::Duration;

use miserly_launch::{PriorityRights, assume_priority_rights, priority_rights};
use rustix::fs::{AtFlags, CWD, Mode, chmod, chownat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with, sockopt,
};
use serde::{Deserialize, Serialize};

use crate::channel::Channel;
use crate::client::{StartError, Started};
use crate::{GroupFacts, identity};

/// The number of looks at the executor of an earlier daemon, and the pause between them: ten seconds in all.
const LOOKS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(20);

/// The answer to a daemon. It has the daemon's end of the socket pair, if there is no problem.
#[derive(Debug, Serialize, Deserialize)]
struct Handed {
    /// The build of the service.
    identity: String,
    groups: Option<GroupFacts>,
    warnings: Vec<String>,
    priorities: PriorityRights,
    problem: Option<String>,
}

/// The service.
#[derive(Debug)]
pub struct Service {
    socket: OwnedFd,
    uid: u32,
    executor: Option<Child>,
}

impl Service {
    /// Listens at a path, for this user. The folder of the path is one that only root can change.
    ///
    /// # Errors
    /// The socket cannot be created.
    pub fn listen(path: &Path, uid: u32) -> io::Result<Service> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = seqpacket()?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        let user = rustix::fs::Uid::from_raw(uid);
        chownat(CWD, path, Some(user), None, AtFlags::SYMLINK_NOFOLLOW)?;
        chmod(path, Mode::RUSR | Mode::WUSR)?;
        listen(&socket, 8)?;
        Ok(Service { socket, uid, executor: None })
    }

    /// Waits for a daemon, and hands an executor over to it. `start` starts one. Returns the reason why the daemon has none.
    ///
    /// # Errors
    /// The socket failed.
    pub fn serve_one(
        &mut self,
        start: impl FnOnce() -> Result<Started, String>,
    ) -> io::Result<Option<String>> {
        let connection = loop {
            match accept_with(&self.socket, SocketFlags::CLOEXEC) {
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                other => break other?,
            }
        };
        // The rights of the path say the same.
        let peer = sockopt::socket_peercred(&connection)?.uid.as_raw();
        if peer != self.uid {
            return Ok(Some(format!("user {peer} is not that of the daemon")));
        }
        let started = self.wait_for_earlier().and_then(|()| start());
        let priorities = priority_rights();
        let (socket, groups, warnings, problem) = match started {
            Ok(Started { socket, groups, warnings, process }) => {
                self.executor = Some(process);
                (Some(socket), groups, warnings, None)
            }
            Err(problem) => (None, None, vec![], Some(problem)),
        };
        let answer = Handed { identity: identity(), groups, warnings, priorities, problem };
        let fds: Vec<_> = socket.iter().map(AsFd::as_fd).collect();
        // A daemon that is gone needs no answer, and its executor ends with the socket.
        let _ = Channel::from_fd(connection)?.send(&answer, &fds, SendFlags::DONTWAIT);
        Ok(answer.problem)
    }

    /// Waits until the executor of an earlier daemon has ended: it does when that daemon has.
    fn wait_for_earlier(&mut self) -> Result<(), String> {
        let Some(executor) = &mut self.executor else { return Ok(()) };
        for _ in 0..LOOKS {
            if !matches!(executor.try_wait(), Ok(None)) {
                self.executor = None;
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        Err("the executor of another daemon runs".to_owned())
    }
}

/// An executor of a service, as a daemon gets it.
#[derive(Debug)]
pub struct Handover {
    /// The daemon's end of the socket pair, for [`Client::new`](crate::Client::new).
    pub socket: OwnedFd,
    /// What the kernel does for the control groups of jobs; `None` if they have none.
    pub groups: Option<GroupFacts>,
    /// One sentence for each thing that is missing.
    pub warnings: Vec<String>,
}

/// Gets an executor from the service at a path.
///
/// # Errors
/// There is no such service, it is of another build, or the executor did not begin.
pub fn hand_over(path: &Path) -> Result<Handover, StartError> {
    let socket = seqpacket()?;
    connect(&socket, &SocketAddrUnix::new(path).map_err(io::Error::from)?).map_err(io::Error::from)?;
    let Some((handed, mut fds)) = Channel::from_fd(socket)?.receive::<Handed>()? else {
        return Err(StartError::Problem("its service has closed the connection".to_owned()));
    };
    if let Some(problem) = handed.problem {
        return Err(StartError::Problem(problem));
    }
    if handed.identity != identity() {
        return Err(StartError::Problem("its service is of another build: start it again".to_owned()));
    }
    let socket = fds.pop().ok_or_else(|| StartError::Problem("its service sent no socket".to_owned()))?;
    assume_priority_rights(handed.priorities);
    Ok(Handover { socket, groups: handed.groups, warnings: handed.warnings })
}

fn seqpacket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

#[cfg(test)]
mod tests {
    use rustix::process::geteuid;

    use super::*;

    fn handed(uid: u32, start: impl FnOnce() -> Result<Started, String> + Send) -> (Option<String>, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let mut service = Service::listen(&path, geteuid().as_raw()).unwrap();
        service.uid = uid;
        thread::scope(|scope| {
            let daemon = scope.spawn(|| match hand_over(&path) {
                Ok(handover) => format!("{:?}", handover.warnings),
                Err(error) => error.to_string(),
            });
            (service.serve_one(start).unwrap(), daemon.join().unwrap())
        })
    }

    #[test]
    fn a_daemon_gets_an_executor() {
        let start = || {
            let process = std::process::Command::new("true").spawn().unwrap();
            let socket = Channel::pair().unwrap().0.into_fd();
            Ok(Started { socket, groups: None, warnings: vec!["a warning".to_owned()], process })
        };
        let (problem, daemon) = handed(geteuid().as_raw(), start);
        assert_eq!((problem, daemon.as_str()), (None, "[\"a warning\"]"));
    }

    #[test]
    fn a_daemon_is_told_why_it_has_none() {
        let (problem, daemon) = handed(geteuid().as_raw(), || Err("a reason".to_owned()));
        assert_eq!(problem.as_deref(), Some("a reason"));
        assert_eq!(daemon, "the executor does not begin: a reason");
    }

    #[test]
    fn another_user_gets_none() {
        let (problem, daemon) = handed(geteuid().as_raw() + 1, || unreachable!());
        assert!(problem.is_some_and(|problem| problem.contains("is not that of the daemon")));
        assert!(daemon.contains("closed the connection"), "{daemon}");
    }
}
