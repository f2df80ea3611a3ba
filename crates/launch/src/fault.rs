//! Faults for tests: errors of the disk, and clocks that step.
//!
//! `MISERLY_FAULTS` names a file. A debug build of the daemon and its shims read it at each fault point and at each reading of
//! a clock, so a test changes the faults of a running daemon. A release build has no faults. Each line is one fault:
//!
//! ```text
//! commit:enospc     each pass of this point fails
//! flush:eio:3       the third pass fails, counted from the first one of a process under this text
//! wall:-3600        the time of day is an hour back
//! boot:90.5         the machine slept for so long, in seconds
//! boot-id:two       the machine was booted again, and this is the name of the boot
//! ```
//!
//! [`of_this_thread`] sets the faults of the disk for one thread, in place of a file.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::io::Errno;

/// The variable with the path of the file.
pub const VARIABLE: &str = "MISERLY_FAULTS";

/// The longest wait for an instant while a clock may step.
pub const LONGEST_WAIT: Duration = Duration::from_millis(50);

const PER_SECOND: f64 = 1e6;

miserly_core::named_enum! {
    /// A point at which the disk may fail.
    pub enum FaultPoint {
        /// A commit of the store: nothing of it is on disk.
        Commit "commit",
        /// A commit of the store whose flush fails: it can be read.
        Flush "flush",
        /// The flush of the store before it is read.
        Open "open",
        /// A backup of the store.
        Backup "backup",
        /// The folder of an attempt.
        Folder "folder",
        /// A record of an attempt before its command may run.
        Record "record",
        /// A record of an attempt whose flush fails: it can be read.
        RecordFlush "record-flush",
        /// The room for the start and the end of an attempt.
        Room "room",
        /// The script of a job.
        Script "script",
        /// The start of an attempt.
        Start "start",
        /// The end of an attempt.
        End "end",
        /// An output file of a job.
        Output "output",
    }
}

impl FaultPoint {
    /// Passes the point.
    ///
    /// # Errors
    /// The error that a test selected for this pass.
    pub fn pass(self) -> io::Result<()> {
        static PASSES: Mutex<Passes> = Mutex::new(Passes { text: String::new(), counts: vec![] });
        if !cfg!(debug_assertions) {
            return Ok(());
        }
        if let Some(errno) = OF_THREAD.with_borrow_mut(|(text, passes)| passes.next(self, text)) {
            return Err(errno.into());
        }
        let Some(text) = text() else { return Ok(()) };
        let mut passes = PASSES.lock().unwrap_or_else(PoisonError::into_inner);
        passes.next(self, &text).map_or(Ok(()), |errno| Err(errno.into()))
    }
}

thread_local! {
    /// The faults of a thread, and its passes under them.
    static OF_THREAD: RefCell<(String, Passes)> = const {
        RefCell::new((String::new(), Passes { text: String::new(), counts: vec![] }))
    };
}

/// Sets the faults of the disk for this thread, as lines of a file of faults. Passes are counted from here on. Without a line
/// there is none, as in a release build.
pub fn of_this_thread(lines: &str) {
    OF_THREAD.set((lines.to_owned(), Passes { text: String::new(), counts: vec![] }));
}

/// The passes of points under one text.
struct Passes {
    text: String,
    /// The passes of the point of each line.
    counts: Vec<u64>,
}

impl Passes {
    /// Counts a pass of a point. Returns its error, if there is one.
    fn next(&mut self, point: FaultPoint, text: &str) -> Option<Errno> {
        if self.text != text {
            *self = Passes { text: text.to_owned(), counts: vec![0; text.lines().count()] };
        }
        let mut failed = None;
        for (line, count) in text.lines().zip(&mut self.counts) {
            let Some((errno, nth)) = disk_fault(point, line) else { continue };
            *count += 1;
            if nth.is_none_or(|nth| nth == *count) {
                failed = failed.or(Some(errno));
            }
        }
        failed
    }
}

/// Parses a line about this point: the error, and the only pass with it.
fn disk_fault(point: FaultPoint, line: &str) -> Option<(Errno, Option<u64>)> {
    let mut words = line.split(':');
    if words.next()? != point.name() {
        return None;
    }
    let errno = match words.next()? {
        "enospc" => Errno::NOSPC,
        "eio" => Errno::IO,
        _ => return None,
    };
    match words.next() {
        Some(nth) => Some((errno, Some(nth.parse().ok()?))),
        None => Some((errno, None)),
    }
}

/// The steps of the clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockSteps {
    /// The microseconds by which the time of day is ahead.
    pub wall: i64,
    /// The microseconds for which the machine slept.
    pub boot: i64,
}

impl ClockSteps {
    /// Returns the present steps.
    pub fn now() -> ClockSteps {
        text().map_or(ClockSteps::default(), |text| ClockSteps::read(&text))
    }

    fn read(text: &str) -> ClockSteps {
        let step = |name: &str| {
            let micros = |line: &str| line.strip_prefix(name)?.strip_prefix(':')?.parse::<f64>().ok();
            let seconds = text.lines().find_map(micros).unwrap_or(0.0);
            #[allow(clippy::cast_possible_truncation, reason = "a test steps by years at most")]
            let micros = (seconds * PER_SECOND) as i64;
            micros
        };
        ClockSteps { wall: step("wall"), boot: step("boot") }
    }
}

/// Returns the name of the boot that a test has given.
pub fn boot_id() -> Option<String> {
    boot_id_in(&text()?)
}

fn boot_id_in(text: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix("boot-id:")).map(str::to_owned)
}

/// Returns whether a test may have faults here.
pub fn are_possible() -> bool {
    file().is_some()
}

/// Lets a child of this process have the same faults.
pub fn pass_on(command: &mut Command) {
    if let Some(path) = file() {
        command.env(VARIABLE, path);
    }
}

fn file() -> Option<&'static PathBuf> {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    if !cfg!(debug_assertions) {
        return None;
    }
    FILE.get_or_init(|| std::env::var_os(VARIABLE).map(PathBuf::from)).as_ref()
}

/// Returns the present text of the file, if there is one.
fn text() -> Option<String> {
    fs::read_to_string(file()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_point_fails_at_its_passes_only() {
        for point in FaultPoint::ALL {
            let mut passes = Passes { text: String::new(), counts: vec![] };
            let text = format!("{}:eio:2\nwall:5\n", point.name());
            let seen: Vec<_> = (0..3).map(|_| passes.next(point, &text)).collect();
            assert_eq!(seen, [None, Some(Errno::IO), None], "{}", point.name());
            let other = FaultPoint::ALL.into_iter().filter(|other| *other != point);
            let all = format!("{}:enospc", point.name());
            assert!(other.into_iter().all(|other| passes.next(other, &all).is_none()));
            assert_eq!((0..2).map(|_| passes.next(point, &all)).collect::<Vec<_>>(), [Some(Errno::NOSPC); 2]);
        }
        let mut passes = Passes { text: String::new(), counts: vec![] };
        for text in ["", "commit", "commit:", "commit:enoent", "commit:eio:x"] {
            assert_eq!(passes.next(FaultPoint::Commit, text), None, "{text}");
        }
    }

    #[test]
    fn a_thread_has_faults_of_its_own() {
        of_this_thread("commit:eio:2");
        let elsewhere = std::thread::spawn(|| (0..3).all(|_| FaultPoint::Commit.pass().is_ok()));
        let kinds: Vec<_> = (0..3).map(|_| FaultPoint::Commit.pass().map_err(|e| e.raw_os_error())).collect();
        assert_eq!(kinds, [Ok(()), Err(Some(Errno::IO.raw_os_error())), Ok(())]);
        assert!(elsewhere.join().unwrap());
        of_this_thread("");
        assert!((0..3).all(|_| FaultPoint::Commit.pass().is_ok()));
    }

    #[test]
    fn clocks_step_by_seconds() {
        assert_eq!(
            ClockSteps::read("commit:eio\nwall:-3600\nboot:0.5"),
            ClockSteps { wall: -3_600_000_000, boot: 500_000 }
        );
        assert_eq!(ClockSteps::read("wall:x"), ClockSteps::default());
    }

    #[test]
    fn a_boot_has_a_name() {
        assert_eq!(boot_id_in("boot:720\nboot-id:two").as_deref(), Some("two"));
        assert_eq!(boot_id_in("boot:720"), None);
    }
}
