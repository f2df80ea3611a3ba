//! What the launcher does with rights: in this process, or through the executor.
//!
//! The rest of the daemon connects to shims and reads records, and needs no rights.

use std::io;
use std::path::Path;
use std::time::Duration;

use miserly_engine::Attempt;
use miserly_executor::{Attempts, Client, FindFailure, LaunchFailure, LaunchRequest};
use miserly_launch::{BootTime, FoundAttempt, KillResult, Shim};
use miserly_launcher::id;

use super::retire;

/// What works on attempts with the rights of their users.
#[derive(Clone, Debug)]
pub enum Executor {
    /// This process, whose user is that of all jobs.
    Own(Attempts),
    /// A process of root. Each user has jobs.
    Separate(Client),
}

impl Executor {
    /// Returns the folder of the attempts.
    pub(super) fn folder(&self) -> &Path {
        match self {
            Executor::Own(attempts) => &attempts.folder,
            Executor::Separate(client) => client.attempts(),
        }
    }

    /// Returns the folder of an attempt.
    pub(crate) fn attempt_folder(&self, attempt: Attempt) -> std::path::PathBuf {
        id(attempt).folder(self.folder())
    }

    pub(super) fn launch(&self, request: &LaunchRequest) -> Result<Shim, LaunchFailure> {
        match self {
            Executor::Own(attempts) => attempts.launch(request, None),
            Executor::Separate(client) => client.launch(request),
        }
    }

    /// Returns the state of an attempt. Waits at most for a time.
    pub(super) fn find(&self, attempt: Attempt, wait: Duration) -> Result<FoundAttempt, FindFailure> {
        match self {
            Executor::Own(attempts) => attempts.find(id(attempt), BootTime::now().after(wait)),
            Executor::Separate(client) => match retire::find(&id(attempt).folder(client.attempts()))? {
                Some(found) => Ok(found),
                None => client.find(id(attempt), wait),
            },
        }
    }

    /// Kills the processes of an attempt but its shim. Waits at most for a time.
    pub(super) fn kill_job(&self, attempt: Attempt, wait: Duration) -> io::Result<KillResult> {
        match self {
            Executor::Own(attempts) => attempts.kill_job(id(attempt), BootTime::now().after(wait)),
            Executor::Separate(client) => client.kill_job(id(attempt), wait),
        }
    }

    /// Continues a shim, without a wait.
    pub(super) fn wake(&self, attempt: Attempt, shim: &Shim) -> io::Result<()> {
        match self {
            Executor::Own(_) => shim.wake(),
            Executor::Separate(client) => client.wake_shim(id(attempt)),
        }
    }

    /// Kills a shim whose job has no process left, without a wait.
    pub(super) fn kill_shim(&self, attempt: Attempt, shim: &Shim) -> io::Result<()> {
        match self {
            Executor::Own(_) => shim.kill(),
            Executor::Separate(client) => client.kill_shim(id(attempt)),
        }
    }

    /// Keeps the record of an attempt that is over, and removes all else of it.
    pub(super) fn retire(&self, attempt: Attempt) {
        let folder = id(attempt).folder(self.folder());
        match self {
            Executor::Own(_) => retire::retire(&folder),
            Executor::Separate(_) => retire::copy(&folder),
        }
        self.remove(attempt);
    }

    /// Removes the folder and the control group of an attempt that is over.
    pub(super) fn remove(&self, attempt: Attempt) {
        let removed = match self {
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

    /// Gives the processors of an attempt that has ended back to other programs.
    pub(super) fn end_partition(&self, attempt: Attempt) {
        let ended = match self {
            Executor::Own(attempts) => attempts.end_partition(id(attempt)),
            Executor::Separate(client) => client.end_partition(id(attempt)),
        };
        if let Err(error) = ended {
            tracing::warn!("job {}: {error}", attempt.job);
        }
    }

    /// Keeps this memory for jobs, in bytes. What is not possible is logged.
    pub(crate) fn keep_memory(&self, bytes: u64) {
        let kept = match self {
            Executor::Own(attempts) => attempts.groups.keep_memory(bytes),
            Executor::Separate(client) => client.keep_memory(bytes),
        };
        if let Err(error) = kept {
            tracing::warn!("memory is not guaranteed to jobs: {error}; restart the daemon");
        }
    }

    /// Keeps other programs off these processors, and off no others.
    pub(super) fn confine(&self, busy: &[u32]) -> io::Result<()> {
        match self {
            Executor::Own(attempts) => attempts.groups.confine(busy),
            Executor::Separate(client) => client.confine(busy.to_vec()),
        }
    }

    /// Returns the executor, if it is a process of its own.
    pub(crate) fn client(&self) -> Option<&Client> {
        match self {
            Executor::Own(_) => None,
            Executor::Separate(client) => Some(client),
        }
    }
}
