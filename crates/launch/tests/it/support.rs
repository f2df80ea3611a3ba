//! A test attempt and its observation.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use miserly_cgroup::{Capability, Tree, group_of};
use miserly_launch::{
    AttemptEnd, AttemptSpec, AttemptState, BootTime, CgroupSpec, CriticalPriority, Exit, FoundAttempt,
    MachineClock as _, OutputFile, ResourceLimits, RunMode, Shim, ShimCommand, ShimReply, find, launch,
    usable_cpus,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

/// Long enough for anything that takes any time at all.
pub(crate) const SOON: Duration = Duration::from_mins(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Returns the program that acts as the shim.
pub(crate) fn exe() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_launch-shim"))
}

/// Returns the processors on which a test may run processes.
pub(crate) fn cpus() -> Vec<u32> {
    usable_cpus().unwrap()
}

/// The environment variable with a folder of cgroup v2. All tests run in control groups below it if it is set.
const TREE: &str = "MISERLY_TEST_TREE";

/// Returns whether a process is stopped, or frozen with its control group.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let is_frozen = || group_of(pid)?.value("cgroup.events", "frozen ").ok();
    // D: it waits for a stopped child of `vfork`, and stops before it continues.
    stat(pid).is_some_and(|stat| stat[0] == "T" || stat[0] == "D") || is_frozen() == Some(1)
}

/// Returns a job number that no other test has, for the name of its control group.
fn number_of_a_test() -> u64 {
    static TESTS: AtomicU64 = AtomicU64::new(0);
    u64::from(std::process::id()) * 1000 + TESTS.fetch_add(1, Ordering::Relaxed)
}

/// Returns whether a process runs only where nothing else wants to: by its class, or by its control group.
pub(crate) fn is_idle(pid: u32) -> bool {
    const SCHED_IDLE: &str = "5";
    let group_is_idle = || group_of(pid)?.read("cpu.idle").ok();
    stat(pid).is_some_and(|stat| stat[38] == SCHED_IDLE) || group_is_idle().as_deref() == Some("1")
}

/// Returns the control group for an attempt of one test.
fn group_of_a_test() -> Option<CgroupSpec> {
    static CAN: OnceLock<Vec<Capability>> = OnceLock::new();
    let tree = PathBuf::from(std::env::var_os(TREE)?);
    let can = CAN.get_or_init(|| Tree::open(&tree).unwrap().probe(0).unwrap().present()).clone();
    let raises = can.contains(&Capability::Idle);
    Some(CgroupSpec {
        tree,
        shims: None,
        can,
        memory: Some(64 << 20),
        pids: Some(500),
        early_on_all: false,
        raises,
        strict: false,
        hides_devices: false,
    })
}

/// A folder with the specification of an attempt.
pub(crate) struct Test {
    pub(crate) folder: TempDir,
    pub(crate) spec: AttemptSpec,
}

impl Test {
    /// Creates a shell script on any processor for a minute, with its output in `out`.
    pub(crate) fn new(script: &str) -> Test {
        let folder = TempDir::new().unwrap();
        let end = BootTime::now().after(60 * SECOND);
        let spec = AttemptSpec {
            job: number_of_a_test(),
            attempt: 1,
            argv: ["/bin/sh", "-c", script].map(OsString::from).to_vec(),
            script: None,
            cwd: folder.path().to_owned(),
            env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            stdin: None,
            interaction: None,
            stdout: OutputFile { path: "out".into(), append: false },
            stderr: None,
            umask: 0o022,
            limits: ResourceLimits::default(),
            mode: RunMode::Reserved { cpus: cpus(), end },
            critical_priority: CriticalPriority::Off,
            grace: SECOND,
            orphan_resume_delay: 60 * SECOND,
            early_signal: None,
            run_limit: None,
            idle: None,
            resize_notice: None,
            cgroup: group_of_a_test(),
            user: None,
            private_folders: None,
            queue_programs: None,
        };
        Test { folder, spec }
    }

    /// Returns whether its control group does something.
    pub(crate) fn group_can(&self, capability: Capability) -> bool {
        self.spec.cgroup.as_ref().is_some_and(|cgroup| cgroup.can.contains(&capability))
    }

    /// Returns the folder of the attempt.
    pub(crate) fn dir(&self) -> PathBuf {
        self.folder.path().join("7.1")
    }

    pub(crate) fn launch(&self) -> Shim {
        launch(exe(), &self.dir(), &self.spec).unwrap()
    }

    /// Launches the attempt and waits for its end.
    #[track_caller]
    pub(crate) fn run(&self) -> AttemptEnd {
        ended(&self.launch())
    }

    /// Returns the output.
    pub(crate) fn out(&self) -> String {
        fs::read_to_string(self.folder.path().join("out")).unwrap_or_default()
    }

    /// Waits for a line and returns the whole output.
    #[track_caller]
    pub(crate) fn wait_out(&self, line: &str) -> String {
        until(|| self.out().lines().any(|written| written == line).then(|| self.out()))
    }

    /// Returns the pids in the output, one per line.
    #[track_caller]
    pub(crate) fn pids(&self, count: usize) -> Vec<u32> {
        until(|| {
            let pids: Vec<u32> = self.out().lines().filter_map(|line| line.parse().ok()).collect();
            (pids.len() >= count && self.out().ends_with('\n')).then_some(pids)
        })
    }

    pub(crate) fn find(&self) -> FoundAttempt {
        find(&self.dir()).unwrap()
    }
}

impl Drop for Test {
    /// Leaves no process running, even after a failed test.
    fn drop(&mut self) {
        if let Ok(FoundAttempt::Alive(mut shim)) = find(&self.dir()) {
            let _ = shim.request(&ShimCommand::Kill { grace: Duration::ZERO });
            gone(&shim);
        }
        if let Some(tree) = self.spec.cgroup.as_ref().map(|cgroup| Tree::opened(&cgroup.tree, None)) {
            // Fails where a test has left processes on purpose.
            let _ = tree.job(self.spec.job, self.spec.attempt).remove();
        }
    }
}

/// Runs a script that succeeds, and returns its output.
#[track_caller]
pub(crate) fn output(test: &Test) -> String {
    let end = test.run();
    assert_eq!(end.exit, Exit::Code(0), "{}", test.out());
    test.out()
}

/// Waits for the end of an attempt.
#[track_caller]
pub(crate) fn ended(shim: &Shim) -> AttemptEnd {
    assert!(gone(shim), "the shim is still there");
    shim.end().unwrap().expect("an end")
}

/// Waits for the exit of a shim; `true` if it exited in time.
pub(crate) fn gone(shim: &Shim) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(shim.fd(), PollFlags::IN)];
    let timeout = Timespec { tv_sec: SOON.as_secs().try_into().unwrap(), tv_nsec: 0 };
    poll(&mut polled, Some(&timeout)).unwrap() == 1
}

/// Waits until `look` returns a value.
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

/// Sends a command and returns the state in its reply.
#[track_caller]
pub(crate) fn done(shim: &mut Shim, command: &ShimCommand) -> AttemptState {
    match shim.request(command).unwrap() {
        ShimReply::Done(state) => state,
        other => panic!("{command:?} is answered by {other:?}"),
    }
}

/// Returns the fields of `stat` from the state on, or `None` if the process has exited.
pub(crate) fn stat(pid: u32) -> Option<Vec<String>> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = line.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// Returns whether a process is not dead.
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

/// Returns a field of a process's `status`.
#[track_caller]
pub(crate) fn status(pid: u32, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("a field");
    line.trim_start_matches(':').trim().to_owned()
}

/// Kills an attempt that is no longer needed.
pub(crate) fn kill(shim: &mut Shim) {
    done(shim, &ShimCommand::Kill { grace: Duration::ZERO });
    ended(shim);
}
