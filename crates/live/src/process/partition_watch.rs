//! The partition of a job of a strict queue.

use std::os::fd::{AsFd, BorrowedFd};

use miserly_cgroup::{EventWatch, JobGroup};

/// Watches whether the processors of a job are still its own. The kernel ends a partition without a word
/// when another group or the hotplug of processors makes it impossible.
#[derive(Debug)]
pub(super) struct PartitionWatch {
    job: JobGroup,
    events: EventWatch,
}

impl PartitionWatch {
    /// Returns `None` if the group is gone.
    pub(super) fn new(job: JobGroup) -> Option<PartitionWatch> {
        let events = job.watch_partition().ok()?;
        Some(PartitionWatch { job, events })
    }

    /// Takes note of a change. Returns the state of the partition, or `None` if the group is gone.
    pub(super) fn read(&self) -> Option<String> {
        self.events.clear().then(|| self.job.partition().ok())?
    }
}

impl AsFd for PartitionWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}
