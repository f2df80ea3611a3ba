//! The daemon of a measurement: in a folder of its own, with its own socket and state.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use miserly_api::client::Client;
use miserly_api::model::{JobView, Status, Submission, Submitted};
use miserly_run::Stopwatch;

use crate::error::MeasureError;
use crate::processes::{self, ChildId};
use crate::program::Record;

/// Limit of the time until a daemon answers, also on a busy machine.
const START: Duration = Duration::from_mins(1);

/// The time ahead of a promised start at which opportunistic work is parked, seconds.
pub(crate) const LEAD: f64 = 0.3;

/// The time that the daemon plans for the end of a job behind its window, seconds.
pub(crate) const CLEANUP: f64 = 0.3;

/// The memory of a job. Opportunistic work needs some that no window has.
const MEMORY: u64 = 256 << 20;

/// The settings of a daemon that differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'a> {
    /// The processors for jobs.
    pub(crate) cpus: usize,
    /// The folder of cgroup v2 for the control groups of jobs.
    pub(crate) cgroup: Option<&'a Path>,
    /// The word for the priority of jobs in their windows.
    pub(crate) priority: &'static str,
}

/// A running daemon.
pub(crate) struct Daemon {
    folder: PathBuf,
    process: ChildId,
    client: Client,
}

impl Daemon {
    /// Starts a daemon in a new folder, and waits until it answers.
    pub(crate) fn start(exe: &Path, folder: &Path, settings: &Settings<'_>) -> Result<Daemon, MeasureError> {
        fs::create_dir_all(folder).map_err(MeasureError::io(folder.display().to_string()))?;
        let file = folder.join("daemon.toml");
        fs::write(&file, configuration(settings)).map_err(MeasureError::io(file.display().to_string()))?;
        let log = File::create(folder.join("log")).map_err(MeasureError::io("the log of the daemon"))?;
        let socket = folder.join("socket");
        let mut command = Command::new(exe);
        command.arg("daemon").arg("--config").arg(&file).arg("--state").arg(folder.join("state"));
        // An experiment may run beside the daemon of its user.
        command
            .arg("--share-cpus")
            .arg("--socket")
            .arg(&socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        // An interrupt from the terminal is for the measurement, which ends its daemon with all jobs.
        command.process_group(0);
        let process = processes::start(&mut command).map_err(MeasureError::io("the daemon"))?;
        let client = Client::new(socket).map_err(MeasureError::io("the client"))?;
        let daemon = Daemon { folder: folder.to_owned(), process, client };
        daemon.wait_until_ready()?;
        Ok(daemon)
    }

    fn wait_until_ready(&self) -> Result<(), MeasureError> {
        let watch = Stopwatch::start();
        while self.client.status().is_err() {
            let ended = processes::ended(self.process).map_err(MeasureError::io("the daemon"))?;
            if ended.is_some() || watch.elapsed() > START {
                return Err(self.failure());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn failure(&self) -> MeasureError {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        MeasureError::Daemon(log.lines().last().unwrap_or("nothing").to_owned())
    }

    pub(crate) fn status(&self) -> Result<Status, MeasureError> {
        Ok(self.client.status()?)
    }

    /// Returns the client, for requests that need no more.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Submits a job and returns its number.
    pub(crate) fn submit(&self, submission: &Submission) -> Result<i64, MeasureError> {
        let Submitted { jobs } = self.client.submit(submission)?;
        jobs.first().map(|job| job.number).ok_or_else(|| MeasureError::Daemon("no job".into()))
    }

    /// Returns a job of this program with `cpus` processors for at most `time` seconds.
    pub(crate) fn job(&self, exe: &Path, arguments: Vec<String>, cpus: usize, time: f64) -> Submission {
        let mut command = vec![exe.display().to_string()];
        command.extend(arguments);
        Submission {
            command,
            directory: self.folder.clone(),
            output: Some(self.folder.join("%j.out")),
            cpus: cpus as u64,
            memory: Some(MEMORY * cpus as u64),
            time,
            ..Submission::default()
        }
    }

    /// Waits for the end of a job.
    pub(crate) fn wait(&self, job: i64) -> Result<JobView, MeasureError> {
        Ok(self.client.wait(job)?)
    }

    /// Returns what a job reported.
    pub(crate) fn record(&self, job: i64) -> Result<Record, MeasureError> {
        read_record(&self.folder.join(format!("{job}.out")))
    }

    /// Ends the daemon and all its jobs.
    pub(crate) fn stop(self) -> Result<(), MeasureError> {
        processes::kill(self.process).map_err(MeasureError::io("the end of the daemon"))?;
        processes::kill_of(&self.folder);
        Ok(())
    }
}

/// Reads the record that a program wrote.
pub(crate) fn read_record(path: &Path) -> Result<Record, MeasureError> {
    let text = fs::read_to_string(path).map_err(MeasureError::io(path.display().to_string()))?;
    serde_json::from_str(&text).map_err(|error| {
        MeasureError::Kernel(format!("a kernel wrote {:?} and no record: {error}", text.trim()))
    })
}

fn configuration(Settings { cpus, cgroup, priority }: &Settings<'_>) -> String {
    // A debug format of a text is one of TOML, but for control characters.
    let group =
        cgroup.map_or_else(String::new, |path| format!("cgroup = {:?}\n", path.display().to_string()));
    format!(
        "{group}critical-priority = \"{priority}\"\ncleanup-time = {CLEANUP}\ngrace = 1\npreempt-lead-time = {LEAD}\n[pool]\ncpus = {cpus}\n\
         [[queue]]\nname = \"batch\"\npolicy = \"miser\"\npromise-slack = 0\n"
    )
}
