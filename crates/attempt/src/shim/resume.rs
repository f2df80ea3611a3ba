//! Resuming a job: its process group with one signal, other processes one by one.

use std::io;

use miserly_cgroup::Capability;

use super::commands::CommandResult;
use super::host::{Host, Recipients, Signal};
use super::supervisor::{RETRY_INTERVAL, Supervisor};
use crate::protocol::ShimRefusal;
use crate::time::BootTime;

impl<H: Host> Supervisor<H> {
    /// Resumes the job on a command or at the begin of its window.
    ///
    /// # Errors
    /// Some processes could not be inspected. The job counts as running, and the shim retries.
    pub(super) fn resume(&mut self) -> CommandResult {
        self.abandon_stop();
        // Running time counts from the first process that runs.
        self.timeline.resume(self.host.now());
        self.resume_all().map_err(|error| ShimRefusal::from_processes(&error))
    }

    /// Resumes the process group with one signal and then the other processes.
    ///
    /// The scan for others is skipped if there are none: it would take a processor from a resumed
    /// process.
    pub(super) fn resume_all(&mut self) -> io::Result<()> {
        if self.can(Capability::Freeze) {
            let thawed = self.thaw();
            self.retry_unless(&thawed);
            return thawed;
        }
        let in_one_group = std::mem::take(&mut self.in_one_group);
        if self.main.exit.is_none() {
            let _ = self.host.signal(Signal::Continue, Recipients::Group);
            if in_one_group {
                return Ok(());
            }
        }
        self.resume_others()
    }

    /// Lets the kernel thaw the control group, if it was frozen.
    pub(super) fn thaw(&mut self) -> io::Result<()> {
        if self.can(Capability::Freeze) { self.host.freeze(false) } else { Ok(()) }
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
        let to = if self.main.exit.is_none() { Recipients::Others } else { Recipients::All };
        let sent = self.host.signal(Signal::Continue, to);
        self.retry_unless(&sent);
        sent
    }

    /// Schedules the next try after a failure.
    fn retry_unless(&mut self, done: &io::Result<()>) {
        self.resume_at = done.is_err().then(|| self.host.now().after(RETRY_INTERVAL));
    }
}
