//! A daemon that is started, killed and restarted on one state.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use miserly_api::client::Client;
use miserly_api::model::{Filter, JobView, Phase, Submission};
use miserly_test_support::Requirement;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{SOON, until, until_or_tell};

/// A folder with a daemon: its configuration, state, socket and log. All its processes end with it.
pub(crate) struct Daemon {
    folder: TempDir,
    /// The socket of the next daemon.
    pub(crate) socket: PathBuf,
    process: Option<Child>,
    has_faults: bool,
}

impl Daemon {
    /// Returns a daemon with this configuration that answers requests.
    pub(crate) fn new(configuration: &str) -> Daemon {
        let mut daemon = Daemon::asleep(configuration);
        daemon.start();
        daemon
    }

    /// Returns a daemon that is not started.
    pub(crate) fn asleep(configuration: &str) -> Daemon {
        let folder = TempDir::new().expect("a temporary folder");
        let socket = folder.path().join("socket");
        let daemon = Daemon { folder, socket, process: None, has_faults: false };
        daemon.configure(configuration);
        daemon
    }

    /// Returns a daemon that answers requests, whose disk and clocks can fail.
    pub(crate) fn with_faults(configuration: &str) -> Daemon {
        let mut daemon = Daemon::asleep_with_faults(configuration);
        daemon.start();
        daemon
    }

    /// Returns a daemon that is not started, whose disk and clocks can fail.
    pub(crate) fn asleep_with_faults(configuration: &str) -> Daemon {
        let mut daemon = Daemon::asleep(configuration);
        daemon.has_faults = true;
        daemon
    }

    /// Returns the path of the file with the present faults, as in `miserly_launch::fault`.
    pub(crate) fn faults(&self) -> PathBuf {
        self.path("faults")
    }

    /// Replaces the faults. The daemon and its shims read them at any time.
    pub(crate) fn set_faults(&self, faults: &str) {
        let new = self.path("faults.new");
        fs::write(&new, faults).expect("a file that can be written");
        fs::rename(new, self.faults()).expect("a file that can be renamed");
    }

    /// Sets the clocks of the machine ahead by these seconds, as after a sleep.
    pub(crate) fn set_ahead(&self, seconds: f64) {
        self.set_faults(&format!("wall:{seconds}\nboot:{seconds}\n"));
    }

    /// Returns a daemon with one queue of this policy, all processors, and a short cleanup time.
    pub(crate) fn of_policy(policy: &str) -> Daemon {
        Daemon::new(&queue(policy))
    }

    /// Returns a daemon whose socket is in a new folder that others reach.
    pub(crate) fn for_everybody(more: &str) -> Daemon {
        let mut daemon = Daemon::asleep(&format!("access = \"everybody\"\n{more}{}", queue("miser")));
        fs::set_permissions(daemon.path(""), Permissions::from_mode(0o755)).expect("a folder of one's own");
        daemon.socket = daemon.path("run/miserly/socket");
        daemon.start();
        daemon
    }

    pub(crate) fn configure(&self, configuration: &str) {
        let path = self.path("daemon.toml");
        fs::write(&path, configuration).expect("a file that can be written");
        // Whatever the umask of the tests is: a daemon without root's rights reads it, too.
        fs::set_permissions(path, Permissions::from_mode(0o644)).expect("a mode");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// Returns the command of the daemon with these options.
    pub(crate) fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_miserly"));
        let log = File::options().create(true).append(true).open(self.path("log")).expect("a log");
        command
            .arg("daemon")
            .arg("--config")
            .arg(self.path("daemon.toml"))
            .arg("--state")
            .arg(self.state())
            .arg("--socket")
            .arg(&self.socket)
            // Other tests run daemons on the same processors.
            .arg("--share-cpus")
            .args(options)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        if self.has_faults {
            command.env(miserly_launch::fault::VARIABLE, self.faults());
        }
        command
    }

    /// Starts the daemon and waits until it answers.
    #[track_caller]
    pub(crate) fn start(&mut self) {
        self.start_with(&[]);
    }

    #[track_caller]
    pub(crate) fn start_with(&mut self, options: &[&str]) {
        let mut command = self.command(options);
        self.run(&mut command);
    }

    /// Starts the daemon by this command and waits until it answers.
    #[track_caller]
    pub(crate) fn run(&mut self, command: &mut Command) {
        self.process = Some(command.spawn().expect("a program that starts"));
        self.wait_until_ready();
    }

    /// Starts a daemon that may not be able to answer yet.
    pub(crate) fn start_unready(&mut self) {
        self.process = Some(self.command(&[]).spawn().expect("a program that starts"));
    }

    /// Starts a daemon that will kill itself at a crash point. It may do so before it answers.
    pub(crate) fn start_to_crash(&mut self, point: &str) {
        let mut command = self.command(&[]);
        let child = command.env(miserly_live::crash_point::VARIABLE, point).spawn();
        self.process = Some(child.expect("a program that starts"));
    }

    /// Returns whether the process of the daemon has ended.
    pub(crate) fn is_dead(&mut self) -> bool {
        let process = self.process.as_mut().expect("it was started");
        process.try_wait().expect("a child that can be waited for").is_some()
    }

    #[track_caller]
    pub(crate) fn wait_until_ready(&mut self) {
        let socket = self.socket.clone();
        let process = self.process.as_mut().expect("it was started");
        until("the daemon answers", SOON, || {
            let ended = process.try_wait().expect("a child that can be waited for");
            assert!(ended.is_none(), "the daemon does not start: {}", log_of(self.folder.path()));
            // Not the previous daemon: a child that is not yet a shim may still have its socket.
            let pid = i32::try_from(process.id()).ok()?;
            Client::new(socket.clone()).ok()?.status().ok().filter(|status| status.pid == pid)
        });
    }

    pub(crate) fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.process.as_ref()?.id()).ok()?)
    }

    /// Kills the daemon.
    pub(crate) fn kill(&mut self) {
        self.end(Signal::KILL);
    }

    /// Terminates the daemon and waits for its end.
    pub(crate) fn stop(&mut self) {
        self.end(Signal::TERM);
    }

    fn end(&mut self, signal: Signal) {
        if let Some(pid) = self.pid() {
            // It may have ended.
            let _ = kill_process(pid, signal);
        }
        if let Some(mut process) = self.process.take() {
            process.wait().expect("a child that can be waited for");
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.socket.clone()).expect("a client")
    }

    /// Submits a job that must be accepted, and returns its number.
    #[track_caller]
    pub(crate) fn submit(&self, submission: &Submission) -> i64 {
        self.client().submit(submission).expect("it is accepted").jobs[0].number
    }

    #[track_caller]
    pub(crate) fn job(&self, number: i64) -> JobView {
        self.client().job(number).expect("the daemon knows it")
    }

    /// Waits for the end of the job and returns the job.
    #[track_caller]
    pub(crate) fn wait(&self, number: i64) -> JobView {
        self.client().wait(number).expect("it ends")
    }

    /// Releases the jobs that are held since their daemon died before their release. It may die here, too.
    ///
    /// Cancels and returns those that cannot be released: they have no window before their deadlines.
    pub(crate) fn release_held(&self) -> Vec<i64> {
        let mut jobs = self.client().jobs(&Filter::default()).unwrap_or_default();
        jobs.retain(|job| job.phase == Phase::Held && self.client().release(job.number).is_err());
        let left: Vec<i64> = jobs.iter().map(|job| job.number).collect();
        for job in &left {
            let _ = self.client().cancel(*job, false);
        }
        left
    }

    /// Waits until all jobs have ended.
    #[track_caller]
    pub(crate) fn wait_for_all(&self) {
        let left = || self.client().all_jobs(&Filter::default()).expect("a list");
        let mut fewest = left();
        while !fewest.is_empty() {
            let fewer = || Some(left()).filter(|left| left.len() < fewest.len());
            fewest = until_or_tell(SOON, fewer, || format!("one of these ends: {:#?}", left()));
        }
    }

    /// Returns all jobs, finished ones included.
    pub(crate) fn history(&self) -> Vec<JobView> {
        let mut jobs: Vec<JobView> = vec![];
        loop {
            let after = Some(jobs.last().map_or(0, |job| job.number));
            let filter = Filter { all: true, after, ..Filter::default() };
            let page = self.client().jobs(&filter).expect("a page of a list");
            if page.is_empty() {
                return jobs;
            }
            jobs.extend(page);
        }
    }

    /// Returns whether the first attempt of a job has the record of its end.
    pub(crate) fn has_ended(&self, job: i64) -> bool {
        self.state().join(format!("attempts/{job}.1/end.json")).exists()
    }

    /// Returns the first number that a job wrote to this file: its process id.
    #[track_caller]
    pub(crate) fn pid_in(&self, name: &str) -> u32 {
        until("it writes its number", SOON, || {
            let text = fs::read_to_string(self.path(name)).ok()?;
            text.ends_with('\n').then(|| text.lines().next()?.parse().ok())?
        })
    }

    pub(crate) fn log(&self) -> String {
        log_of(self.folder.path())
    }
}

/// Returns a configuration with one queue of this policy, all processors, and a short cleanup time.
pub(crate) fn queue(policy: &str) -> String {
    let cpus = cpus().len();
    format!("cleanup-time = 1\n[pool]\ncpus = {cpus}\n[[queue]]\nname = \"batch\"\npolicy = \"{policy}\"\n")
}

/// The same as [`queue`], where promises have no slack: each is the planned start.
pub(crate) fn exact_queue(policy: &str) -> String {
    queue(policy) + "promise-slack = 0\n"
}

/// Returns the processors of the machine that jobs may use.
pub(crate) fn cpus() -> Vec<u32> {
    miserly_launch::usable_cpus().expect("the processors of this process")
}

/// Returns whether two jobs can run at the same time. If not, reports the skip of a test.
#[track_caller]
pub(crate) fn has_two_cpus() -> bool {
    Requirement::Cpus.is_met(cpus().len() >= 2, "needs two processors")
}

/// Returns the output of the program for these arguments.
pub(crate) fn miserly(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_miserly"));
    command.args(arguments).stdin(Stdio::null()).output().expect("a program that starts")
}

fn log_of(folder: &Path) -> String {
    fs::read_to_string(folder.join("log")).unwrap_or_default()
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            let log = self.log();
            let tail = log.lines().rev().take(30).collect::<Vec<_>>();
            eprintln!("the daemon's log ends with, backwards:\n{}", tail.join("\n"));
            eprintln!("its processes:\n{}", super::processes::describe(self.folder.path()));
        }
        super::processes::kill_all(self.folder.path());
    }
}
