//! Process information from `/proc`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::time::Duration;

use miserly_attempt::shim::CpuTime;
use rustix::io::Errno;

/// The clock ticks of a second (`USER_HZ`), the same for all programs of these platforms.
const CLOCK_TICKS: u64 = 100;

/// A process or thread as described by its `stat` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: u32,
    state: u8,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    threads: u32,
    /// Time on processors, in clock ticks: its own, and that of children that it has waited for.
    cpu_ticks: [u64; 2],
    /// Start in clock ticks since the boot. It distinguishes processes that reuse a number.
    pub(crate) start_time: u64,
}

impl Stat {
    /// Parses a `stat` line. The name may contain spaces and brackets; the fields follow the last
    /// bracket.
    fn parse(line: &str) -> Option<Stat> {
        let (pid, fields) = split(line)?;
        let ticks = |fields: &[&str]| fields.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
        Some(Stat {
            pid: pid.parse().ok()?,
            state: *fields.first()?.as_bytes().first()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            cpu_ticks: [ticks(fields.get(11..13)?), ticks(fields.get(13..15)?)],
            threads: fields.get(17)?.parse().ok()?,
            start_time: fields.get(19)?.parse().ok()?,
        })
    }

    fn from_file(path: &str) -> io::Result<Option<Stat>> {
        match fs::read_to_string(path) {
            Ok(line) => match Stat::parse(&line) {
                Some(stat) => Ok(Some(stat)),
                None if is_reaped(&line) => Ok(None),
                None => Err(io::Error::other(format!("{path}: malformed stat line: {line:?}"))),
            },
            Err(error) if is_gone(&error) => Ok(None),
            // A process of another user, hidden by the mount option `hidepid`.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a process, or returns `None` if it does not exist.
    pub(crate) fn from_pid(pid: u32) -> io::Result<Option<Stat>> {
        Stat::from_file(&format!("/proc/{pid}/stat"))
    }

    /// Returns the time on processors.
    pub(crate) fn cpu_time(&self) -> CpuTime {
        let time = |ticks: u64| Duration::from_millis(ticks.saturating_mul(1000 / CLOCK_TICKS));
        let [own, of_children] = self.cpu_ticks.map(time);
        CpuTime { own, of_children }
    }

    /// Returns whether no thread of the process runs any more, reaped or not.
    ///
    /// A main thread that has exited is a zombie while other threads run.
    pub(crate) fn is_dead(&self) -> bool {
        self.ended() && (self.threads <= 1 || threads(self.pid).is_ok_and(|all| all.iter().all(Stat::ended)))
    }

    /// Returns whether no thread runs or will run after a stop signal.
    ///
    /// Each thread has stopped, has exited, or waits uninterruptibly in the kernel. A thread in the
    /// last state stops before it returns to its program. The parent of a `vfork` is in this state
    /// until its stopped child runs another program.
    pub(crate) fn is_stopped(&self) -> bool {
        self.all_threads(|stat| stat.ended() || matches!(stat.state, b'T' | b't' | b'D'))
    }

    /// Returns whether each thread has been stopped by a signal or has exited.
    pub(crate) fn is_halted(&self) -> bool {
        self.all_threads(|stat| stat.ended() || stat.state == b'T')
    }

    /// Returns whether the process itself is stopped, by a signal or by a debugger.
    pub(crate) fn is_suspended(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }

    fn all_threads(&self, condition: impl Fn(&Stat) -> bool) -> bool {
        condition(self) && (self.threads <= 1 || threads(self.pid).is_ok_and(|all| all.iter().all(condition)))
    }

    fn ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// Splits a `stat` line into the number of the process and the fields after its name.
fn split(line: &str) -> Option<(&str, Vec<&str>)> {
    let (pid, rest) = line.split_once(" (")?;
    let (_, rest) = rest.rsplit_once(')')?;
    Some((pid, rest.split_ascii_whitespace().collect()))
}

/// Returns whether the process of a `stat` line was reaped while the kernel wrote the line.
///
/// Such a process has no group any more, which the kernel writes as -1.
fn is_reaped(line: &str) -> bool {
    split(line).is_some_and(|(_, fields)| fields.get(2) == Some(&"-1"))
}

/// Returns all processes in ascending order of their numbers.
///
/// # Errors
/// `/proc` cannot be read.
pub(crate) fn processes() -> io::Result<Vec<Stat>> {
    stats_in("/proc")
}

/// Returns the threads of a process, or none if it has exited.
pub(crate) fn threads(pid: u32) -> io::Result<Vec<Stat>> {
    match stats_in(&format!("/proc/{pid}/task")) {
        Err(error) if is_gone(&error) => Ok(Vec::new()),
        other => other,
    }
}

fn stats_in(folder: &str) -> io::Result<Vec<Stat>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        found.extend(Stat::from_file(&format!("{folder}/{pid}/stat"))?);
    }
    found.sort_unstable_by_key(|stat| stat.pid);
    Ok(found)
}

/// Returns the autogroup of a process's session, or `None` if the kernel has none.
///
/// Names are unique within a boot and so distinguish sessions that reuse a number.
pub(crate) fn autogroup(pid: u32) -> Option<String> {
    let line = fs::read_to_string(format!("/proc/{pid}/autogroup")).ok()?;
    line.split_ascii_whitespace().next().map(str::to_owned)
}

/// Returns whether a process was started with this entry in its environment.
///
/// The environment of another user's process cannot be read, and a process may overwrite its own.
pub(crate) fn has_in_environment(pid: u32, entry: &[u8]) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|one| one == entry)
}

/// Returns the descendants of the given processes, and these.
pub(crate) fn descendants(all: &[Stat], of: BTreeSet<u32>) -> BTreeSet<u32> {
    let mut members = of;
    // A child may have a lower number than its parent.
    loop {
        let before = members.len();
        let children: Vec<u32> =
            all.iter().filter(|stat| members.contains(&stat.parent)).map(|stat| stat.pid).collect();
        members.extend(children);
        if members.len() == before {
            return members;
        }
    }
}

/// Returns whether an error means that the process has exited.
fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_rest_of_the_line() {
        let line = "77 (a) R 1 (b) S 5 70 60 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 3 0 4242 1 1\n";
        let stat = Stat::parse(line).unwrap();
        let expected = Stat {
            pid: 77,
            state: b'S',
            parent: 5,
            group: 70,
            session: 60,
            cpu_ticks: [30, 70],
            threads: 3,
            start_time: 4242,
        };
        let [own, of_children] = [300, 700].map(Duration::from_millis);
        assert_eq!((stat, stat.cpu_time()), (expected, CpuTime { own, of_children }));
        assert_eq!(Stat::parse("77 (a) R 1 2"), None);
    }

    #[test]
    fn a_process_reaped_while_it_is_read_is_gone() {
        let line = "1519 (exe) Z 0 -1 -1 0 -1 4228364 129 117 0 0 24 9 7 3 20 0 0 0 10651 0 0 0\n";
        assert_eq!((Stat::parse(line), is_reaped(line)), (None, true));
        assert!(!is_reaped("1519 (exe -1) Z 0 7 7 0 -1 4228364"));
    }

    #[test]
    fn a_process_finds_itself() {
        let me = std::process::id();
        let stat = Stat::from_pid(me).unwrap().unwrap();
        assert!(
            processes().unwrap().iter().any(|other| (other.pid, other.start_time) == (me, stat.start_time))
        );
        assert!(!stat.is_dead() && !stat.is_stopped());
        assert_eq!(Stat::from_pid(u32::MAX).unwrap(), None);
    }
}
