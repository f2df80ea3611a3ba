//! Resuming a job: its process group with one signal, other processes one by one.

use miserly_attempt::{BootTime, ShimRefusal};
use std::io;

use miserly_cgroup::Capability;
use rustix::process::Signal;

use super::commands::CommandResult;
use super::supervisor::{RETRY_INTERVAL, Supervisor};
use crate::clock::MachineClock as _;

impl Supervisor {
    /// Resumes the job on a command or at the begin of its window.
    ///
    /// # Errors
    /// Some processes could not be inspected. The job counts as running, and the shim retries.
    pub(super) fn resume(&mut self) -> CommandResult {
        self.abandon_stop();
        // Running time counts from the first process that runs.
        self.timeline.set_stopped(BootTime::now(), false);
        self.resume_all().map_err(|error| ShimRefusal::from_processes(&error))
    }

    /// Resumes the process group with one signal and then the other processes.
    ///
    /// The scan for others is skipped if there are none: it would take a processor from a resumed
    /// process.
    pub(super) fn resume_all(&mut self) -> io::Result<()> {
        if self.processes.cgroup(Capability::Freeze).is_some() {
            let thawed = self.thaw();
            self.retry_unless(&thawed);
            return thawed;
        }
        let in_one_group = std::mem::take(&mut self.in_one_group);
        if self.main.exit.is_none() {
            self.processes.signal_group(Signal::CONT);
            if in_one_group {
                return Ok(());
            }
        }
        self.resume_others()
    }

    /// Lets the kernel thaw the control group, if it was frozen.
    pub(super) fn thaw(&self) -> io::Result<()> {
        self.processes.cgroup(Capability::Freeze).map_or(Ok(()), |cgroup| cgroup.freeze(false))
    }

    /// Repeats the scan for other processes if it is due.
    pub(super) fn retry_resume(&mut self, now: BootTime) -> io::Result<()> {
        match self.resume_at {
            Some(at) if at <= now => self.resume_all(),
            _ => Ok(()),
        }
    }

    /// Resumes the processes outside the process group. A failed scan is repeated later.
    fn resume_others(&mut self) -> io::Result<()> {
        let sent = match self.main.exit {
            None => self.processes.signal_others(Signal::CONT),
            Some(_) => self.processes.signal(Signal::CONT),
        };
        self.retry_unless(&sent);
        sent
    }

    /// Schedules the next try after a failure.
    fn retry_unless(&mut self, done: &io::Result<()>) {
        self.resume_at = done.is_err().then(|| BootTime::now().after(RETRY_INTERVAL));
    }
}
