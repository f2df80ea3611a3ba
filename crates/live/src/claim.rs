//! The processors of the daemons on this machine, as each of them makes them known.
//!
//! A daemon binds an abstract socket whose name has its user, its process and its processors. The
//! kernel lists these names for every user, needs no permission for them, and removes one with its
//! process. A name may be forged, so a daemon refuses to start only for one whose process the kernel confirms.

use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use miserly_api::model::SharedCpus;
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, connect, shutdown, socket_with,
};
use rustix::process::geteuid;

use crate::config::Configuration;
use crate::users;

/// The beginning of each name.
const PREFIX: &str = "miserly-daemon";

/// The most bytes of a name.
const LONGEST: usize = 107;

/// Ranges of processors: the first and the last one of each.
type Ranges = Vec<(u32, u32)>;

/// The processors of this daemon, which other daemons see as long as it lives.
#[derive(Clone, Debug)]
pub(crate) struct Claim(Arc<Mutex<Claimed>>);

#[derive(Debug)]
struct Claimed {
    cpus: Vec<u32>,
    /// `None` if the system refused the socket.
    _socket: Option<Listener>,
}

/// The socket of a claim, and the thread that ends the connections of those who ask for its process.
#[derive(Debug)]
struct Listener {
    socket: Arc<UnixListener>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    fn start(socket: UnixListener) -> io::Result<Listener> {
        let socket = Arc::new(socket);
        let accepting = Arc::clone(&socket);
        let accept = move || while accepting.accept().is_ok() {};
        let thread = thread::Builder::new().name("claim".to_owned()).spawn(accept)?;
        Ok(Listener { socket, thread: Some(thread) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // The thread ends, and with it the last owner of the socket.
        if shutdown(&self.socket, Shutdown::Both).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

impl Claim {
    /// Makes the processors known to other daemons.
    pub(crate) fn new(cpus: &[u32]) -> Claim {
        Claim(Arc::new(Mutex::new(Claimed::new(cpus))))
    }

    /// Replaces the processors.
    pub(crate) fn change(&self, cpus: &[u32]) {
        let mut claimed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if claimed.cpus != cpus {
            *claimed = Claimed::new(cpus);
        }
    }

    /// Returns the processors that other daemons have, too.
    pub(crate) fn shared(&self) -> Vec<SharedCpus> {
        let cpus = self.0.lock().unwrap_or_else(PoisonError::into_inner).cpus.clone();
        shared(&cpus, process::id(), &fs::read_to_string("/proc/net/unix").unwrap_or_default())
    }
}

/// Returns another daemon that has processors of this configuration, if its process is known for certain.
///
/// A daemon for all users heeds only daemons of root and of its own user: others must not keep it from its start.
pub(crate) fn rival(configuration: &Configuration) -> Option<SharedCpus> {
    let own = geteuid();
    let for_all = configuration.user.is_some() || own.is_root();
    let heeded = |uid: u32| !for_all || uid == 0 || uid == own.as_raw();
    let list = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let others = shared(&configuration.cpus, process::id(), &list);
    others.into_iter().find(|other| heeded(other.uid) && is_confirmed(other, &list))
}

/// Returns whether the kernel names the process of a claim as the one that made it.
fn is_confirmed(claim: &SharedCpus, list: &str) -> bool {
    let begin = format!("@{PREFIX}/{}/{}/", claim.uid, claim.pid);
    let mut names = list.lines().filter_map(|line| line.rsplit(' ').next()?.strip_prefix(begin.as_str()));
    names.any(|ranges| {
        owner(format!("{}{ranges}", &begin[1..]).as_bytes())
            .is_ok_and(|owner| owner == (claim.uid, claim.pid))
    })
}

/// Returns the user and the process that listen on an abstract socket. It does not wait for them.
fn owner(name: &[u8]) -> Result<(u32, u32), Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new_abstract_name(name)?)?;
    let owner = socket_peercred(&socket)?;
    Ok((owner.uid.as_raw(), owner.pid.as_raw_nonzero().get().unsigned_abs()))
}

impl Claimed {
    fn new(cpus: &[u32]) -> Claimed {
        let socket = bind(cpus).and_then(Listener::start);
        if let Err(error) = &socket {
            tracing::warn!("other daemons do not see the processors of this one: {error}");
        }
        Claimed { cpus: cpus.to_vec(), _socket: socket.ok() }
    }
}

fn bind(cpus: &[u32]) -> io::Result<UnixListener> {
    let name = name(geteuid().as_raw(), process::id(), cpus);
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// Returns the name of a daemon's socket. If there are too many ranges, it has the one around them all.
fn name(uid: u32, pid: u32, cpus: &[u32]) -> String {
    let whole = format!("{PREFIX}/{uid}/{pid}/{}", ranges(cpus));
    match (cpus.first(), cpus.last()) {
        (Some(first), Some(last)) if whole.len() > LONGEST => format!("{PREFIX}/{uid}/{pid}/{first}-{last}"),
        _ => whole,
    }
}

/// Returns processors in ascending order as ranges, such as `0-3,7-7`.
fn ranges(cpus: &[u32]) -> String {
    let runs = cpus.chunk_by(|one, next| one.checked_add(1) == Some(*next));
    let text = runs.filter_map(|run| Some(format!("{}-{}", run.first()?, run.last()?)));
    text.collect::<Vec<_>>().join(",")
}

/// Returns the processors among `cpus` of each other process in the kernel's list of sockets.
fn shared(cpus: &[u32], own: u32, list: &str) -> Vec<SharedCpus> {
    let found = list.lines().filter_map(|line| daemon(line.rsplit(' ').next()?));
    let mut all = vec![];
    for (uid, pid, ranges) in found.filter(|(_, pid, _)| *pid != own) {
        // A connection to the socket is listed by the same name.
        if all.iter().any(|other: &SharedCpus| (other.uid, other.pid) == (uid, pid)) {
            continue;
        }
        let has = |cpu: &u32| ranges.iter().any(|(first, last)| (*first..=*last).contains(cpu));
        let cpus: Vec<u32> = cpus.iter().copied().filter(has).collect();
        if !cpus.is_empty() {
            all.push(SharedCpus { cpus, uid, user: users::name(uid), pid });
        }
    }
    all
}

/// Parses the name of a daemon's socket.
fn daemon(name: &str) -> Option<(u32, u32, Ranges)> {
    let mut parts = name.strip_prefix('@')?.strip_prefix(PREFIX)?.strip_prefix('/')?.split('/');
    let (uid, pid) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let range = |range: &str| {
        let (first, last) = range.split_once('-')?;
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    Some((uid, pid, parts.next()?.split(',').filter_map(range).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "Num RefCount Protocol Flags Type St Inode Path\n\
        0000: 00000002 00000000 00010000 0001 01 1 /run/miserly/socket\n\
        0000: 00000002 00000000 00010000 0001 01 2 @miserly-daemon/0/7/0-1\n\
        0000: 00000002 00000000 00010000 0001 01 3 @miserly-daemon/0/8/1-2,5-9\n\
        0000: 00000002 00000000 00000000 0001 03 6 @miserly-daemon/0/8/1-2,5-9\n\
        0000: 00000002 00000000 00010000 0001 01 4 @miserly-daemon/x/9/1-2\n\
        0000: 00000002 00000000 00010000 0001 01 5 @miserly-daemon/0\n";

    #[test]
    fn the_processors_of_others_are_found() {
        let pids = |cpus: &[u32], own| {
            let all = shared(cpus, own, LIST);
            all.into_iter().map(|other| (other.pid, other.cpus)).collect::<Vec<_>>()
        };
        assert_eq!(pids(&[0, 1, 6], 1), [(7, vec![0, 1]), (8, vec![1, 6])]);
        assert_eq!(pids(&[0, 1], 7), [(8, vec![1])]);
        assert_eq!(pids(&[3, 4], 1), []);
    }

    #[test]
    fn a_name_fits_and_is_read_back() {
        let few = name(1000, 12, &[0, 1, 2, 7]);
        assert_eq!(few, "miserly-daemon/1000/12/0-2,7-7");
        assert_eq!(daemon(&format!("@{few}")), Some((1000, 12, vec![(0, 2), (7, 7)])));
        let even: Vec<u32> = (0..200).map(|cpu| 2 * cpu).collect();
        let many = name(u32::MAX, u32::MAX, &even);
        assert_eq!(daemon(&format!("@{many}")), Some((u32::MAX, u32::MAX, vec![(0, 398)])));
    }

    #[test]
    fn a_claim_is_seen_while_it_lives() {
        let claim = Claim::new(&[5, 6]);
        let list = || fs::read_to_string("/proc/net/unix").unwrap();
        assert_eq!(shared(&[6], 0, &list()).iter().filter(|one| one.pid == process::id()).count(), 1);
        let of_this =
            SharedCpus { cpus: vec![6], uid: geteuid().as_raw(), user: String::new(), pid: process::id() };
        assert!(is_confirmed(&of_this, &list()));
        for _ in 0..300 {
            // The queue of connections may be full for a moment.
            assert!((0..10_000).any(|_| is_confirmed(&of_this, &list())));
        }
        // A name that another process has made up.
        let forged = SharedCpus { pid: 1, uid: 0, ..of_this.clone() };
        let listed = format!("x @{PREFIX}/0/1/5-6");
        assert!(!is_confirmed(&forged, &listed));
        let name = format!("{PREFIX}/0/1/5-6");
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let _forger = UnixListener::bind_addr(&address).unwrap();
        assert!(!is_confirmed(&forged, &listed) && owner(name.as_bytes()).is_ok());
        claim.change(&[9]);
        assert_eq!(shared(&[6], 0, &list()).iter().filter(|one| one.pid == process::id()).count(), 0);
        drop(claim);
        assert_eq!(shared(&[9], 0, &list()).iter().filter(|one| one.pid == process::id()).count(), 0);
    }
}
