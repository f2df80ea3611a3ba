//! The group of one attempt.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::io::pread;

use crate::setting::{EXCLUSIVE, MEMBER, PARTITION};
use crate::{CgroupError, Group, Setting, Usage};

const EVENTS: &str = "cgroup.events";

/// The group of one attempt: all processes of the job, without its shim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobGroup(Group);

/// The processors of a job, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Processors {
    /// All of them. Other groups may have them, too. An empty list is all processors that no partition has.
    ///
    /// A list must not overlap the partition of another job: the kernel ends the partition then, and
    /// keeps its processors from all groups (seen with 6.12).
    Shared(Vec<u32>),
    /// All of them, taken from all other groups. The tree must have reserved them ([`Tree::reserve_cpus`](crate::Tree::reserve_cpus)).
    Exclusive(Vec<u32>),
}

/// The resources that the processes of a job may use. Settings that the machine cannot enforce are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The processors.
    pub cpus: Option<Processors>,
    /// Whether the job runs only where nothing else wants to.
    pub idle: Option<bool>,
    /// Bytes that the job has for itself, as far as the groups above have them. They are neither swapped out nor taken by others.
    pub memory_min: Option<u64>,
    /// Maximum bytes. All processes are killed if the job needs more.
    pub memory_max: Option<u64>,
    /// Maximum number of processes and threads.
    pub pids: Option<u64>,
}

/// The memory of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMemory {
    /// The limit, in bytes.
    pub max: Option<u64>,
    /// The use without the cache of files, in bytes: the kernel can drop that cache.
    pub held: u64,
}

/// The reports of the kernel about the processes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Events {
    /// Whether a process is left. A process that has exited and was not reaped counts as none.
    pub populated: bool,
    /// Whether all processes are frozen.
    pub frozen: bool,
}

/// The events of a job as a descriptor. A poll for `POLLPRI` returns when they have changed since [`EventWatch::clear`].
#[derive(Debug)]
pub struct EventWatch(OwnedFd);

impl EventWatch {
    /// Takes note of the present events. Returns whether the group exists: one that was removed stays changed for ever.
    pub fn clear(&self) -> bool {
        // The content counts only where it is read by name.
        pread(&self.0, &mut [0; 64], 0).is_ok()
    }
}

impl AsFd for EventWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl JobGroup {
    pub(crate) fn at(group: Group) -> JobGroup {
        JobGroup(group)
    }

    /// Returns the group of an attempt by its folder.
    ///
    /// # Errors
    /// As [`Group::open`].
    pub fn open(path: &Path) -> Result<JobGroup, CgroupError> {
        Group::open(path).map(JobGroup::at)
    }

    /// Returns the group.
    pub fn group(&self) -> &Group {
        &self.0
    }

    /// Creates the group.
    ///
    /// # Errors
    /// [`CgroupError::Io`].
    pub fn create(&self) -> Result<(), CgroupError> {
        self.0.make()
    }

    /// Applies limits. Goes on after a failure and returns all failures.
    ///
    /// Lowering the memory below the present use makes the kernel reclaim it, and kill the job if it cannot.
    pub fn limit(&self, limits: &Limits) -> Vec<CgroupError> {
        let mut failures = vec![];
        let mut apply = |setting: Setting| failures.extend(setting.apply(&self.0).err());
        match limits.cpus.clone() {
            None => {}
            Some(Processors::Shared(cpus)) => apply(Setting::Cpus(cpus)),
            Some(Processors::Exclusive(cpus)) => {
                // Another list would make a present partition invalid. The processors are shared for a moment.
                let _ = self.end_partition();
                apply(Setting::Cpus(cpus.clone()));
                apply(Setting::ExclusiveCpus(cpus));
                apply(Setting::Partition(true));
            }
        }
        if let Some(idle) = limits.idle {
            apply(Setting::Idle(idle));
        }
        if let Some(bytes) = limits.memory_max {
            apply(Setting::KillTogether(true));
            apply(Setting::MemoryMax(Some(bytes)));
        }
        if let Some(bytes) = limits.memory_min {
            apply(Setting::MemoryMin(bytes));
            apply(Setting::SwapMax(if bytes == 0 { None } else { Some(0) }));
        }
        if let Some(number) = limits.pids {
            apply(Setting::Pids(Some(number)));
        }
        failures
    }

    /// Orders the kernel to freeze or thaw all processes. [`events`](JobGroup::events) shows whether they are frozen.
    ///
    /// A process in the idle class must run to freeze: beside a busy job that takes up to three seconds.
    ///
    /// # Errors
    /// [`CgroupError::Io`].
    pub fn freeze(&self, on: bool) -> Result<(), CgroupError> {
        self.0.write("cgroup.freeze", if on { "1" } else { "0" })
    }

    /// Kills all processes, also frozen ones and those that are being created.
    ///
    /// # Errors
    /// [`CgroupError::Io`].
    pub fn kill(&self) -> Result<(), CgroupError> {
        self.0.write("cgroup.kill", "1")
    }

    /// Returns the present reports of the kernel.
    ///
    /// # Errors
    /// [`CgroupError::Io`], [`CgroupError::Unknown`].
    pub fn events(&self) -> Result<Events, CgroupError> {
        Ok(Events {
            populated: self.0.value(EVENTS, "populated ")? != 0,
            frozen: self.0.value(EVENTS, "frozen ")? != 0,
        })
    }

    /// Gives the processors of a partition back. Changes nothing where there is none.
    ///
    /// # Errors
    /// [`CgroupError::Io`].
    pub fn end_partition(&self) -> Result<(), CgroupError> {
        if self.partition()? != MEMBER {
            Setting::Partition(false).apply(&self.0)?;
        }
        if self.0.read(EXCLUSIVE)?.is_empty() { Ok(()) } else { self.0.write(EXCLUSIVE, "\n") }
    }

    /// Returns the state of the group as a partition: `root` for a valid one, `member` for none, or `root invalid (REASON)`.
    ///
    /// # Errors
    /// [`CgroupError::Io`].
    pub fn partition(&self) -> Result<String, CgroupError> {
        self.0.read(PARTITION)
    }

    /// Opens the state as a partition for a poll.
    ///
    /// # Errors
    /// [`CgroupError::Io`].
    pub fn watch_partition(&self) -> Result<EventWatch, CgroupError> {
        self.0.watch(PARTITION).map(EventWatch)
    }

    /// Opens the events for a poll.
    ///
    /// # Errors
    /// [`CgroupError::Io`].
    pub fn watch(&self) -> Result<EventWatch, CgroupError> {
        self.0.watch(EVENTS).map(EventWatch)
    }

    /// Returns the processes of the job, also those in groups that the job has created.
    ///
    /// # Errors
    /// [`CgroupError::Io`].
    pub fn processes(&self) -> Result<Vec<u32>, CgroupError> {
        let mut found = vec![];
        let mut groups = vec![self.0.clone()];
        while let Some(group) = groups.pop() {
            found.extend(group.processes()?);
            groups.extend(group.children()?);
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Returns the resources that the job has used.
    ///
    /// # Errors
    /// [`CgroupError::Io`] if the group does not exist.
    pub fn usage(&self) -> Result<Usage, CgroupError> {
        Usage::read(&self.0)
    }

    /// Returns the memory that the job may use and has.
    ///
    /// # Errors
    /// [`CgroupError::Io`] if the group does not exist or has no memory controller, [`CgroupError::Unknown`].
    pub fn memory(&self) -> Result<GroupMemory, CgroupError> {
        const CURRENT: &str = "memory.current";
        let text = self.0.read(CURRENT)?;
        let unknown = || CgroupError::Unknown { path: self.0.path().join(CURRENT), text: text.clone() };
        let current = text.parse::<u64>().map_err(|_| unknown())?;
        let cache = |key| self.0.value("memory.stat", key);
        let files = cache("active_file ")?.saturating_add(cache("inactive_file ")?);
        let max = self.0.read("memory.max")?.parse().ok();
        Ok(GroupMemory { max, held: current.saturating_sub(files) })
    }

    /// Returns whether the job runs only where nothing else wants to ([`Limits::idle`]).
    ///
    /// # Errors
    /// [`CgroupError::Io`] if the group does not exist or has no cpu controller.
    pub fn is_idle(&self) -> Result<bool, CgroupError> {
        Ok(self.0.read("cpu.idle")? == "1")
    }

    /// Returns the share of the processors beside other groups: 1 to 10000, and 0 for an idle group.
    ///
    /// # Errors
    /// [`CgroupError::Io`] if the group does not exist or has no cpu controller, [`CgroupError::Unknown`].
    pub fn weight(&self) -> Result<u32, CgroupError> {
        const WEIGHT: &str = "cpu.weight";
        let text = self.0.read(WEIGHT)?;
        text.parse().map_err(|_| CgroupError::Unknown { path: self.0.path().join(WEIGHT), text })
    }

    /// Removes the group. It must have no process.
    ///
    /// # Errors
    /// [`CgroupError::Io`] if there are processes. A group that does not exist is no error.
    pub fn remove(&self) -> Result<(), CgroupError> {
        self.0.remove()
    }
}
