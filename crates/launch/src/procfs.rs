//! What `/proc` says of processes.

use std::fs;
use std::io;

use rustix::io::Errno;

/// A process or a thread, as its `stat` file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: u32,
    state: u8,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    threads: u32,
    /// Clock ticks from the boot to its start. With the boot, the identity of a process: numbers come back.
    pub(crate) start_time: u64,
}

impl Stat {
    /// Reads a `stat` line. The name in it may hold spaces and brackets; what follows the last bracket is numbers.
    fn parse(line: &str) -> Option<Stat> {
        let (pid, rest) = line.split_once(" (")?;
        let (_, rest) = rest.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Stat {
            pid: pid.parse().ok()?,
            state: *fields.first()?.as_bytes().first()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            threads: fields.get(17)?.parse().ok()?,
            start_time: fields.get(19)?.parse().ok()?,
        })
    }

    fn read(path: &str) -> io::Result<Option<Stat>> {
        match fs::read_to_string(path) {
            Ok(line) => match Stat::parse(&line) {
                Some(stat) => Ok(Some(stat)),
                None => Err(io::Error::other(format!("{path}: no stat line: {line:?}"))),
            },
            Err(error) if gone(&error) => Ok(None),
            // Another user's, which a mount with hidepid hides.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A process; `None` if there is none of that number.
    pub(crate) fn of(pid: u32) -> io::Result<Option<Stat>> {
        Stat::read(&format!("/proc/{pid}/stat"))
    }

    /// Whether nothing of the process runs any more, whether or not it has been waited for.
    ///
    /// A main thread that has ended is a zombie while others go on.
    pub(crate) fn is_dead(&self) -> bool {
        self.ended() && (self.threads <= 1 || threads(self.pid).is_ok_and(|all| all.iter().all(Stat::ended)))
    }

    /// Whether no thread of the process, which was sent a stop, runs or will: all have stopped, or ended, or wait in the kernel.
    ///
    /// One that waits there and cannot be interrupted stops before it is back in its program. It may wait for just this: the parent of a
    /// `vfork` waits until its child, which has stopped, runs another program.
    pub(crate) fn is_stopped(&self) -> bool {
        self.all_threads(|stat| stat.ended() || matches!(stat.state, b'T' | b't' | b'D'))
    }

    /// Whether every thread of the process is stopped by a signal, and so needs none any more, or has ended.
    pub(crate) fn is_halted(&self) -> bool {
        self.all_threads(|stat| stat.ended() || stat.state == b'T')
    }

    fn all_threads(&self, so: impl Fn(&Stat) -> bool) -> bool {
        so(self) && (self.threads <= 1 || threads(self.pid).is_ok_and(|all| all.iter().all(so)))
    }

    fn ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// All processes, by number.
///
/// # Errors
/// If `/proc` cannot be read.
pub(crate) fn processes() -> io::Result<Vec<Stat>> {
    listed("/proc")
}

/// The threads of a process; none if it has gone.
pub(crate) fn threads(pid: u32) -> io::Result<Vec<Stat>> {
    match listed(&format!("/proc/{pid}/task")) {
        Err(error) if gone(&error) => Ok(Vec::new()),
        other => other,
    }
}

fn listed(folder: &str) -> io::Result<Vec<Stat>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        found.extend(Stat::read(&format!("{folder}/{pid}/stat"))?);
    }
    found.sort_unstable_by_key(|stat| stat.pid);
    Ok(found)
}

/// The name of the group in which the kernel weighs a session's processes; `None` if it does not.
///
/// The names are never used twice in a boot, so they tell one session from a later one of the same number.
pub(crate) fn autogroup(pid: u32) -> Option<String> {
    let line = fs::read_to_string(format!("/proc/{pid}/autogroup")).ok()?;
    line.split_ascii_whitespace().next().map(str::to_owned)
}

/// The boot: what an identity is worth ends with it.
pub(crate) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Whether an error says that the process is not there any more.
fn gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_rest_of_the_line() {
        let line = "77 (a) R 1 (b) S 5 70 60 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 3 0 4242 1 1\n";
        let stat = Stat::parse(line).unwrap();
        let expected =
            Stat { pid: 77, state: b'S', parent: 5, group: 70, session: 60, threads: 3, start_time: 4242 };
        assert_eq!(stat, expected);
        assert_eq!(Stat::parse("77 (a) R 1 2"), None);
    }

    #[test]
    fn a_process_finds_itself() {
        let me = std::process::id();
        let stat = Stat::of(me).unwrap().unwrap();
        assert!(
            processes().unwrap().iter().any(|other| (other.pid, other.start_time) == (me, stat.start_time))
        );
        assert!(!stat.is_dead() && !stat.is_stopped());
        assert_eq!(Stat::of(u32::MAX).unwrap(), None);
    }
}
