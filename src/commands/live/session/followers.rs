//! The threads that print the output files of a job without a terminal.

use std::os::fd::OwnedFd;
use std::thread::{self, JoinHandle};

use anyhow::bail;
use miserly_api::model::JobView;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::args::DaemonArgs;
use crate::commands::live::output_file::OutputFile;

/// The bytes of a file that a client of a running job sees first.
const LAST_PART: u64 = 16 << 10;

/// The threads, which end with the job.
pub(super) struct Followers {
    threads: Vec<JoinHandle<anyhow::Result<()>>>,
    /// Closed when all threads have ended.
    pub(super) over: OwnedFd,
}

impl Followers {
    /// Prints the output files of a job until its end, `whole` or from their last part on.
    ///
    /// # Errors
    /// The system has no thread or descriptor left.
    pub(super) fn start(job: &JobView, daemon: &DaemonArgs, whole: bool) -> anyhow::Result<Followers> {
        let (over, open) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut threads = Vec::new();
        for mut output in output_files(job, daemon) {
            if !whole {
                let length = output.path.metadata().map_or(0, |found| found.len());
                output.passed = length.saturating_sub(LAST_PART);
            }
            let open = open.try_clone()?;
            threads.push(thread::Builder::new().spawn(move || {
                let followed = output.follow(true);
                drop(open);
                followed
            })?);
        }
        Ok(Followers { threads, over })
    }

    /// Waits until all is printed.
    ///
    /// # Errors
    /// The first failure of a thread.
    pub(super) fn join(self) -> anyhow::Result<()> {
        for thread in self.threads {
            match thread.join() {
                Ok(followed) => followed?,
                Err(_) => bail!("the output could not be followed"),
            }
        }
        Ok(())
    }
}

/// Returns the output files of a job: one, or two.
pub(super) fn output_files(job: &JobView, daemon: &DaemonArgs) -> Vec<OutputFile> {
    let output = OutputFile::for_job(job, false, daemon);
    let error = OutputFile::for_job(job, true, daemon).filter(|_| job.error != job.output);
    output.into_iter().chain(error.map(OutputFile::on_standard_error)).collect()
}
