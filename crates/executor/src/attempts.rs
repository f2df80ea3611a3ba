//! The attempts in a folder, with the rights of this process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use miserly_cgroup::online_cpus;
use miserly_launch::{
    AttemptEnd, AttemptProcesses, AttemptSpec, BootTime, CPUS, FoundAttempt, JobUser, KillResult,
    PrivateFolders, ResourceLimits, Shim, find_until, launch,
};
use serde::{Deserialize, Serialize};

use crate::failure::{FindFailure, LaunchFailure, LaunchFailureKind};
use crate::groups::JobGroups;
use crate::launch::LaunchRequest;
use crate::message::Rules;
use crate::program::Program;
use crate::queue_programs::QueueRules;

/// The most processes and threads of a user, for each processor of the machine, and at least. They leave room for the users of
/// a machine, and none for a job that only creates processes.
const PROCESSES: (u64, u64) = (512, 4096);

/// Returns the most processes and threads of a user.
fn most_processes() -> u64 {
    let (for_each, least) = PROCESSES;
    online_cpus().map_or(least, |cpus| for_each.saturating_mul(cpus.len() as u64).max(least))
}

/// The numbers of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptId {
    /// The job, from 1.
    pub job: i64,
    /// The attempt of the job, from 1.
    pub nth: u32,
}

impl AttemptId {
    /// Returns whether such an attempt can exist.
    pub const fn is_valid(self) -> bool {
        self.job >= 1 && self.nth >= 1
    }

    /// Returns the folder of the attempt in that of all attempts.
    pub fn folder(self, attempts: &Path) -> PathBuf {
        attempts.join(format!("{}.{}", self.job, self.nth))
    }
}

/// The attempts in a folder, with the rights of this process.
#[derive(Clone, Debug)]
pub struct Attempts {
    /// The folder. Each attempt has a folder in it.
    pub folder: PathBuf,
    /// The program of the shims.
    pub shim: Program,
    /// The path of the daemon's socket, for the environment of jobs.
    pub socket: PathBuf,
    /// The control groups of jobs.
    pub groups: JobGroups,
    /// The rules for jobs.
    pub rules: Rules,
}

impl Attempts {
    /// Launches an attempt as a user; `None` is the user of this process.
    ///
    /// # Errors
    /// As [`miserly_launch::launch()`].
    pub fn launch(&self, request: &LaunchRequest, user: Option<JobUser>) -> Result<Shim, LaunchFailure> {
        self.groups.restore().map_err(|error| {
            let message = format!("the scopes of jobs cannot be started again: {error}");
            LaunchFailure::new(LaunchFailureKind::Temporary, &message)
        })?;
        self.groups.hide_gpus(request.attempt, request.gpus.as_deref().unwrap_or_default())?;
        let user = user.map(|user| JobUser {
            no_new_privileges: self.rules.no_new_privileges(&request.configured_queue),
            pam: self.rules.pam.clone(),
            ..user
        });
        let programs = self.rules.programs.get(&request.configured_queue);
        let (folder, mut base) =
            (request.attempt.folder(&self.folder), request.spec(&self.socket, &self.groups));
        // Another user cannot enter the folder; such a job asks the kernel.
        if let Some(notice) = base.resize_notice.as_mut().filter(|_| user.is_none()) {
            notice.file = true;
            base.env.push(("MISERLY_CPUS_FILE".into(), folder.join(CPUS).into_os_string()));
        }
        if request.restart {
            base = QueueRules::restart(programs, base)?;
        }
        let limits = ResourceLimits { processes: user.as_ref().map(|_| most_processes()), ..base.limits };
        let spec = AttemptSpec {
            critical_priority: self.rules.critical_priority,
            limits,
            private_folders: self.private_folders(request).filter(|_| user.is_some()),
            queue_programs: programs.and_then(|programs| programs.programs(request, user.as_ref())),
            user,
            ..base
        };
        Ok(launch(self.shim.path(), &folder, &spec)?)
    }

    /// Returns the own folders of a job. Their content counts as memory of the job, so each may take all of it.
    fn private_folders(&self, request: &LaunchRequest) -> Option<PrivateFolders> {
        let size = request.memory.map(|kilobytes| kilobytes.saturating_mul(1024));
        self.rules.private_folders.then_some(PrivateFolders { size })
    }

    /// Returns the state of an attempt. Waits at most until an instant.
    ///
    /// # Errors
    /// As [`miserly_launch::find_until`].
    pub fn find(&self, attempt: AttemptId, until: BootTime) -> Result<FoundAttempt, FindFailure> {
        Ok(find_until(&attempt.folder(&self.folder), until)?)
    }

    /// Returns the recorded end of an attempt; `None` if there is none.
    ///
    /// # Errors
    /// The record cannot be read.
    pub(crate) fn end(&self, attempt: AttemptId) -> io::Result<Option<AttemptEnd>> {
        miserly_launch::recorded_end(&attempt.folder(&self.folder)).map_err(io::Error::other)
    }

    /// Kills all processes of an attempt but its shim, and waits for their deaths.
    ///
    /// # Errors
    /// As [`AttemptProcesses::kill_job`].
    pub fn kill_job(&self, attempt: AttemptId, until: BootTime) -> io::Result<KillResult> {
        self.processes(attempt)?.kill_job(until)
    }

    /// Continues the shim of an attempt.
    ///
    /// # Errors
    /// The shim cannot be read or reached.
    pub fn wake_shim(&self, attempt: AttemptId) -> io::Result<()> {
        self.processes(attempt)?.wake_shim()
    }

    /// Kills the shim of an attempt.
    ///
    /// # Errors
    /// The shim cannot be read or reached.
    pub fn kill_shim(&self, attempt: AttemptId) -> io::Result<()> {
        self.processes(attempt)?.kill_shim()
    }

    /// Removes the folder of an attempt that is over.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove_folder(&self, attempt: AttemptId) -> io::Result<()> {
        match fs::remove_dir_all(attempt.folder(&self.folder)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Gives the processors of an attempt that has ended back to other programs, if they were its own.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn end_partition(&self, attempt: AttemptId) -> io::Result<()> {
        self.groups.end_partition(attempt)
    }

    /// Removes the control group of an attempt that is over.
    ///
    /// # Errors
    /// It has processes.
    pub fn remove_group(&self, attempt: AttemptId) -> io::Result<()> {
        self.groups.remove(attempt)
    }

    /// Removes the control groups of attempts that have no folder, whose removal was lost in a crash. Ends the partitions of all
    /// that have ended without a daemon.
    ///
    /// # Errors
    /// The groups cannot be listed.
    pub fn sweep_groups(&self) -> io::Result<()> {
        self.groups.end_partitions()?;
        self.groups.settle_weight();
        for attempt in self.groups.attempts()? {
            if !attempt.folder(&self.folder).exists() {
                // A group that stays is tried again at the next start.
                let _ = self.groups.remove(attempt);
            }
        }
        Ok(())
    }

    /// Returns whether the shim of an attempt lives and has not recorded the end.
    ///
    /// # Errors
    /// The files of the attempt cannot be read.
    pub(crate) fn is_alive(&self, attempt: AttemptId) -> io::Result<bool> {
        let has_ended = attempt.folder(&self.folder).join("end.json").try_exists()?;
        Ok(!has_ended && self.processes(attempt)?.has_shim()?)
    }

    fn processes(&self, attempt: AttemptId) -> io::Result<AttemptProcesses> {
        AttemptProcesses::read(&attempt.folder(&self.folder)).map_err(io::Error::other)
    }
}
