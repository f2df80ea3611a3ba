//! The machine under the launcher: what all its threads share.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use miserly_engine::{Attempt, Usage};
use miserly_executor::{FindFailure, LaunchFailure, LaunchRequest};
use miserly_launch::{
    AttemptEnd, AttemptSpec, BootTime, CommandError, FoundAttempt, KillResult, MachineClock as _,
    ProgramKind, ReplyMessage, Shim, ShimCommand, StartRecord, StoredInstant,
};
use miserly_launcher::{CrashPoint, Found, Host, ShimHandle, Started, id};

use super::{Executor, JobGroups, LauncherNotes, files, retire};
use crate::clock::{BootClock, MachineClocks};
use crate::config::online_cpus;
use crate::crash_point;
use crate::recover;

/// The settings that all threads of attempts share.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(super) executor: Executor,
    pub(super) clock: BootClock,
    pub(super) groups: JobGroups,
    pub(super) notes: LauncherNotes,
}

impl Host for Home {
    type Shim = ConnectedShim;
    type Clocks = MachineClocks;

    fn clock(&self) -> &BootClock {
        &self.clock
    }

    fn pass(&self, point: CrashPoint) {
        crash_point::pass(point);
    }

    fn pause(&self, time: Duration) {
        thread::sleep(time);
    }

    fn attempts(&self) -> io::Result<Vec<Attempt>> {
        let mut attempts = vec![];
        for entry in fs::read_dir(self.executor.folder())? {
            attempts.extend(entry?.file_name().to_str().and_then(attempt_of));
        }
        attempts.sort_unstable();
        Ok(attempts)
    }

    fn highest_job(&self) -> io::Result<i64> {
        let state = self.executor.folder().parent().unwrap_or(Path::new("."));
        recover::highest_job(state).map_err(io::Error::other)
    }

    fn started(&self, attempt: Attempt) -> Option<StoredInstant> {
        let record = fs::read(self.folder(attempt).join("started.json")).ok()?;
        Some(serde_json::from_slice::<StartRecord>(&record).ok()?.instant())
    }

    fn online_cpus(&self) -> Option<Vec<u32>> {
        online_cpus()
    }

    fn folder(&self, attempt: Attempt) -> PathBuf {
        self.executor.attempt_folder(attempt)
    }

    fn has_folder(&self, attempt: Attempt) -> bool {
        self.folder(attempt).exists()
    }

    fn spec(&self, attempt: Attempt) -> Option<AttemptSpec> {
        let path = self.folder(attempt).join("spec.json");
        let read = fs::read(&path).map_err(|error| error.to_string());
        let spec = read.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
        spec.inspect_err(|error| tracing::error!("{}: {error}", path.display())).ok()
    }

    fn launch(&self, request: LaunchRequest) -> Result<ConnectedShim, LaunchFailure> {
        let request = LaunchRequest { files: files::before(), ..request };
        let launched = match &self.executor {
            Executor::Own(attempts) => attempts.launch(&request, None),
            Executor::Separate(client) => client.launch(&request),
        };
        launched.map(ConnectedShim)
    }

    fn find(&self, attempt: Attempt, wait: Duration) -> Result<Found<ConnectedShim>, FindFailure> {
        let found = match &self.executor {
            Executor::Own(attempts) => attempts.find(id(attempt), BootTime::now().after(wait))?,
            Executor::Separate(client) => match retire::find(&self.folder(attempt))? {
                Some(found) => found,
                None => client.find(id(attempt), wait)?,
            },
        };
        Ok(match found {
            FoundAttempt::Alive(shim) => Found::Alive(ConnectedShim(shim)),
            FoundAttempt::Ended(end) => Found::Ended(Box::new(end)),
            FoundAttempt::NeverRan => Found::NeverRan,
            FoundAttempt::Lost(lost) => Found::Lost(lost.cause),
        })
    }

    fn kill_job(&self, attempt: Attempt, wait: Duration) -> io::Result<KillResult> {
        match &self.executor {
            Executor::Own(attempts) => attempts.kill_job(id(attempt), BootTime::now().after(wait)),
            Executor::Separate(client) => client.kill_job(id(attempt), wait),
        }
    }

    fn retire(&self, attempt: Attempt) {
        let folder = self.folder(attempt);
        match &self.executor {
            Executor::Own(_) => retire::retire(&folder),
            Executor::Separate(_) => retire::copy(&folder),
        }
        self.remove(attempt);
    }

    fn remove(&self, attempt: Attempt) {
        let removed = match &self.executor {
            Executor::Own(attempts) => {
                let folder = attempts.remove_folder(id(attempt));
                attempts.remove_group(id(attempt)).and(folder)
            }
            Executor::Separate(client) => client.remove(id(attempt)),
        };
        if let Err(error) = removed {
            tracing::warn!("job {}: attempt {} is not removed: {error}", attempt.job, attempt.nth);
        }
    }

    fn wake(&self, attempt: Attempt, shim: &ConnectedShim) -> io::Result<()> {
        match &self.executor {
            Executor::Own(_) => shim.0.wake(),
            Executor::Separate(client) => client.wake_shim(id(attempt)),
        }
    }

    fn kill_shim(&self, attempt: Attempt, shim: &ConnectedShim) -> io::Result<()> {
        match &self.executor {
            Executor::Own(_) => shim.0.kill(),
            Executor::Separate(client) => client.kill_shim(id(attempt)),
        }
    }

    fn end_partition(&self, attempt: Attempt) {
        let ended = match &self.executor {
            Executor::Own(attempts) => attempts.end_partition(id(attempt)),
            Executor::Separate(client) => client.end_partition(id(attempt)),
        };
        if let Err(error) = ended {
            tracing::warn!("job {}: {error}", attempt.job);
        }
    }

    fn usage(&self, attempt: Attempt) -> Option<Usage> {
        self.groups.usage(attempt)
    }

    fn count_failure(&self, kind: ProgramKind) {
        self.notes.count_failure(kind);
    }
}

/// Returns the attempt that has a folder of this name.
fn attempt_of(name: &str) -> Option<Attempt> {
    let (job, nth) = name.split_once('.')?;
    Some(Attempt { job: job.parse().ok()?, nth: nth.parse().ok()? })
}

/// A shim of this machine.
#[derive(Debug)]
pub(crate) struct ConnectedShim(pub(super) Shim);

impl ShimHandle for ConnectedShim {
    fn send(&mut self, command: &ShimCommand) -> Result<u64, CommandError> {
        self.0.send(command)
    }

    fn receive(&mut self) -> Result<Option<ReplyMessage>, CommandError> {
        self.0.receive()
    }

    fn reconnect(&mut self) -> io::Result<()> {
        self.0.reconnect()
    }

    fn version(&self) -> u32 {
        self.0.hello().map_or(0, |hello| hello.version)
    }

    fn is_stopped(&self) -> bool {
        self.0.is_stopped().unwrap_or(false)
    }

    fn start(&self) -> Option<Started> {
        let record = self.0.start().ok().flatten()?;
        Some(Started { at: record.instant(), epilog: record.epilog })
    }

    fn end(&self) -> Option<AttemptEnd> {
        self.0.end().ok().flatten()
    }
}
