//! The limits of the control group of a job.

use miserly_cgroup::{Capability, CgroupError, Limits, Processors};

use super::host::Host;
use super::supervisor::Supervisor;
use crate::spec::{CgroupSpec, RunMode};

impl CgroupSpec {
    /// Returns whether the control group can do something.
    pub fn has(&self, capability: Capability) -> bool {
        self.can.contains(&capability)
    }

    fn limits(&self, mode: &RunMode) -> Limits {
        let reserved = matches!(mode, RunMode::Reserved { .. });
        let memory = |can| self.memory.filter(|_| self.has(can));
        Limits {
            cpus: self.has(Capability::Cpus).then(|| self.processors(mode)),
            idle: self.has(Capability::Idle).then_some(!reserved),
            memory_max: memory(Capability::MemoryMax),
            memory_min: memory(Capability::MemoryMin).map(|bytes| if reserved { bytes } else { 0 }),
            pids: self.pids.filter(|_| self.has(Capability::Pids)),
        }
    }

    fn processors(&self, mode: &RunMode) -> Processors {
        let cpus = mode.cpus().to_owned();
        match mode {
            RunMode::Opportunistic { .. } if self.early_on_all => Processors::Shared(vec![]),
            RunMode::Reserved { .. } if self.strict => Processors::Exclusive(cpus),
            _ => Processors::Shared(cpus),
        }
    }
}

impl<H: Host> Supervisor<H> {
    /// Returns whether the job has a control group that can do something.
    pub(super) fn can(&self, capability: Capability) -> bool {
        self.attempt.spec.cgroup.as_ref().is_some_and(|cgroup| cgroup.has(capability))
    }

    /// Sets the control group, if the job has one, to what a mode allows.
    ///
    /// # Errors
    /// The first setting that the kernel refused or did not follow.
    pub(super) fn limit(&mut self, mode: &RunMode) -> Result<(), CgroupError> {
        let Some(cgroup) = &self.attempt.spec.cgroup else { return Ok(()) };
        let failures = self.host.limit(&cgroup.limits(mode)).into_iter();
        // The daemon watches the partition, and records that the job has none.
        let (partition, others): (Vec<_>, Vec<_>) = failures.partition(CgroupError::is_about_partition);
        for failure in partition {
            self.host.log(&failure);
        }
        others.into_iter().next().map_or(Ok(()), Err)
    }
}
