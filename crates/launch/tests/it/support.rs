//! An attempt, launched for a test, and what the machine says of it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use miserly_launch::{
    BootTime, Cause, End, Found, Launcher, Limits, Mode, Order, Output, Reply, Shim, State, Told, find,
    launch,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

/// Long enough for anything that takes any time at all.
pub(crate) const SOON: Duration = Duration::from_secs(60);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// The program that acts as the shim.
pub(crate) fn exe() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_miserly-shim"))
}

/// The processors on which a test may run things.
pub(crate) fn cpus() -> Vec<u32> {
    Launcher::probe().unwrap().cpus
}

/// A folder with an order to be launched in it.
pub(crate) struct Test {
    pub(crate) folder: TempDir,
    pub(crate) order: Order,
}

impl Test {
    /// A script of the shell, on any processor, for a minute, its output in `out`.
    pub(crate) fn of(script: &str) -> Test {
        let folder = TempDir::new().unwrap();
        let end = BootTime::now().after(60 * SECOND);
        let order = Order {
            job: 7,
            attempt: 1,
            argv: ["/bin/sh", "-c", script].map(OsString::from).to_vec(),
            script: None,
            cwd: folder.path().to_owned(),
            env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            stdout: Output { path: "out".into(), append: false },
            stderr: None,
            umask: 0o022,
            limits: Limits::default(),
            nice: 0,
            mode: Mode::Critical { cpus: cpus(), end },
            grace: SECOND,
            alone: 60 * SECOND,
            limit: None,
        };
        Test { folder, order }
    }

    /// The folder of the attempt.
    pub(crate) fn dir(&self) -> PathBuf {
        self.folder.path().join("7.1")
    }

    pub(crate) fn launch(&self) -> Shim {
        launch(exe(), &self.dir(), &self.order).unwrap()
    }

    /// Launches it and waits for its end.
    #[track_caller]
    pub(crate) fn run(&self) -> End {
        ended(&self.launch())
    }

    /// What it has written.
    pub(crate) fn out(&self) -> String {
        fs::read_to_string(self.folder.path().join("out")).unwrap_or_default()
    }

    /// Waits for a line of output; all of it.
    #[track_caller]
    pub(crate) fn wait_out(&self, line: &str) -> String {
        until(|| self.out().lines().any(|written| written == line).then(|| self.out()))
    }

    /// The pids that it wrote, one a line.
    #[track_caller]
    pub(crate) fn pids(&self, count: usize) -> Vec<u32> {
        until(|| {
            let pids: Vec<u32> = self.out().lines().filter_map(|line| line.parse().ok()).collect();
            (pids.len() >= count && self.out().ends_with('\n')).then_some(pids)
        })
    }

    pub(crate) fn find(&self) -> Found {
        find(&self.dir()).unwrap()
    }
}

impl Drop for Test {
    /// Leaves nothing running, also when the test has failed.
    fn drop(&mut self) {
        if let Ok(Found::Alive(mut shim)) = find(&self.dir()) {
            let _ = shim.tell(&Told::Kill { grace: Duration::ZERO, cause: Cause::User });
            gone(&shim);
        }
    }
}

/// Waits for the end of an attempt.
#[track_caller]
pub(crate) fn ended(shim: &Shim) -> End {
    assert!(gone(shim), "the shim is still there");
    shim.end().unwrap().expect("an end")
}

/// Waits for the end of a shim; whether it came.
pub(crate) fn gone(shim: &Shim) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(shim.fd(), PollFlags::IN)];
    let timeout = Timespec { tv_sec: SOON.as_secs().try_into().unwrap(), tv_nsec: 0 };
    poll(&mut polled, Some(&timeout)).unwrap() == 1
}

/// Waits for something to be so.
#[track_caller]
pub(crate) fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let late = BootTime::now().after(SOON);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(BootTime::now() < late, "it does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The state that a shim answers with when all went well.
#[track_caller]
pub(crate) fn done(shim: &mut Shim, told: &Told) -> State {
    match shim.tell(told).unwrap() {
        Reply::Done(state) => state,
        other => panic!("{told:?} is answered by {other:?}"),
    }
}

/// The fields of a process's `stat` after its name, from its state on; `None` if it has gone.
pub(crate) fn stat(pid: u32) -> Option<Vec<String>> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = line.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// Whether a process runs, or could.
pub(crate) fn alive(pid: u32) -> bool {
    stat(pid).is_some_and(|fields| fields[0] != "Z" && fields[0] != "X")
}

/// Returns the shims of a folder: the programs with it in their arguments that are not the command yet.
pub(crate) fn shims(dir: &Path) -> Vec<u32> {
    let of_dir = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == dir.as_os_str().as_encoded_bytes())
    };
    let pids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.filter(of_dir).collect()
}

/// Waits until no shim of a folder is left: nothing comes late.
#[track_caller]
pub(crate) fn no_shim_is_left(dir: &Path) {
    until(|| shims(dir).is_empty().then_some(()));
}

/// Processor time of a process, in clock ticks.
pub(crate) fn ticks(pid: u32) -> u64 {
    stat(pid).map_or(0, |fields| fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap())
}

/// A field of a process's `status`.
#[track_caller]
pub(crate) fn status(pid: u32, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("a field");
    line.trim_start_matches(':').trim().to_owned()
}

/// Ends an attempt that has served its purpose.
pub(crate) fn kill(shim: &mut Shim) {
    done(shim, &Told::Kill { grace: Duration::ZERO, cause: Cause::User });
    ended(shim);
}
