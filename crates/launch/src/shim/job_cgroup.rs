//! The control group of a job, where there is one.

use miserly_attempt::{AttemptSpec, CgroupSpec};
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use miserly_cgroup::{Capability, CgroupError, EventWatch, JobGroup, Limits, Tree, Usage};

/// The control group of a job: the means of the kernel that processes alone do not have.
pub(super) struct JobCgroup {
    spec: CgroupSpec,
    group: JobGroup,
    watch: EventWatch,
    is_watched: Cell<bool>,
}

impl JobCgroup {
    /// Creates the group of an attempt and moves the shim to the other shims. Returns `None` for an attempt without a group.
    pub(super) fn begin(spec: &AttemptSpec) -> io::Result<Option<JobCgroup>> {
        let Some(cgroup) = &spec.cgroup else { return Ok(None) };
        let begin = || {
            // The daemon has opened it.
            let tree = tree(cgroup);
            let group = tree.job(spec.job, spec.attempt);
            if cgroup.hides_devices {
                // A group that was removed since would be made without its program.
                JobGroup::open(group.group().path())?;
            } else {
                group.create()?;
            }
            tree.shims().add(0)?;
            let watch = group.watch()?;
            let is_watched = Cell::new(watch.clear());
            Ok(JobCgroup { spec: cgroup.clone(), group, watch, is_watched })
        };
        begin().map(Some).map_err(|error: CgroupError| io::Error::other(error.to_string()))
    }

    /// Returns the folder.
    pub(super) fn path(&self) -> &Path {
        self.group.group().path()
    }

    pub(super) fn can(&self, capability: Capability) -> bool {
        self.spec.has(capability)
    }

    /// Sets limits. Returns the settings that the kernel refused or did not follow.
    pub(super) fn limit(&self, limits: &Limits) -> Vec<CgroupError> {
        self.group.limit(limits)
    }

    /// Gives the group and those above it the highest weight, or takes it away.
    pub(super) fn set_weight(&self, raised: bool) -> Result<(), CgroupError> {
        let tree = tree(&self.spec);
        if raised { tree.raise(&self.group) } else { tree.lower(&self.group) }
    }

    /// Returns the processes of the job.
    pub(super) fn processes(&self) -> io::Result<Vec<u32>> {
        self.group.processes().map_err(io_error)
    }

    /// Orders the kernel to freeze or thaw all processes.
    pub(super) fn freeze(&self, on: bool) -> io::Result<()> {
        self.group.freeze(on).map_err(io_error)
    }

    /// Returns whether all processes are frozen.
    pub(super) fn is_frozen(&self) -> bool {
        self.group.events().is_ok_and(|events| events.frozen)
    }

    /// Kills all processes, also those that are being created.
    pub(super) fn kill(&self) -> io::Result<()> {
        self.group.kill().map_err(io_error)
    }

    /// Returns what the job used so far.
    pub(super) fn usage(&self) -> Option<Usage> {
        self.group.usage().ok()
    }

    /// Takes note of events that a poll has reported. A group that was removed is not watched any more: it would report
    /// without end.
    pub(super) fn clear_events(&self) {
        self.is_watched.set(self.watch.clear());
    }

    /// Returns whether a poll of the group reports events.
    pub(super) fn is_watched(&self) -> bool {
        self.is_watched.get()
    }
}

impl AsFd for JobCgroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }
}

/// Moves the calling process, which becomes the command, into the group of the job. Its children begin there.
pub(super) fn enter(spec: &AttemptSpec) -> Result<(), CgroupError> {
    match &spec.cgroup {
        Some(cgroup) => tree(cgroup).job(spec.job, spec.attempt).group().add(0),
        None => Ok(()),
    }
}

fn tree(cgroup: &CgroupSpec) -> Tree {
    Tree::opened(&cgroup.tree, cgroup.shims.as_deref())
}

fn io_error(error: CgroupError) -> io::Error {
    match error {
        CgroupError::Io { error, .. } => error,
        other => io::Error::other(other.to_string()),
    }
}
