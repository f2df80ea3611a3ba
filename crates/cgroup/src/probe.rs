//! The abilities of a tree, each found by a trial.

use serde::{Deserialize, Serialize};

use crate::{CgroupError, JobGroup, Setting, Tree};

/// A thing that the kernel can do for the jobs of a tree. `Display` completes "the kernel does not ...".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Freezes all processes of a job at once.
    #[error("freeze jobs")]
    Freeze,
    /// Kills all processes of a job at once.
    #[error("kill all processes of a job at once")]
    Kill,
    /// Keeps a job on its processors.
    #[error("keep jobs on their processors")]
    Cpus,
    /// Runs a job only where nothing else wants to.
    #[error("run opportunistic jobs only where nothing else wants to run")]
    Idle,
    /// Limits the memory of a job.
    #[error("limit the memory of jobs")]
    MemoryMax,
    /// Guarantees memory to a job.
    #[error("guarantee memory to jobs")]
    MemoryMin,
    /// Keeps a job out of swap.
    #[error("keep jobs out of swap")]
    Swap,
    /// Limits the number of processes of a job.
    #[error("limit the number of processes of jobs")]
    Pids,
}

impl Capability {
    /// All variants.
    pub const ALL: [Capability; 8] = [
        Capability::Freeze,
        Capability::Kill,
        Capability::Cpus,
        Capability::Idle,
        Capability::MemoryMax,
        Capability::MemoryMin,
        Capability::Swap,
        Capability::Pids,
    ];

    /// Tries it on a group without processes.
    fn try_on(self, job: &JobGroup, cpu: u32) -> Result<(), CgroupError> {
        const SIZE: u64 = 1 << 20;
        let apply = |setting: Setting| setting.apply(job.group());
        match self {
            Capability::Freeze => job.freeze(true).and_then(|()| job.freeze(false)),
            Capability::Kill => job.kill(),
            Capability::Cpus => apply(Setting::Cpus(vec![cpu])),
            Capability::Idle => apply(Setting::Idle(true)),
            Capability::MemoryMax => {
                apply(Setting::KillTogether(true)).and_then(|()| apply(Setting::MemoryMax(Some(SIZE))))
            }
            Capability::MemoryMin => apply(Setting::MemoryMin(SIZE)),
            Capability::Swap => apply(Setting::SwapMax(Some(0))),
            Capability::Pids => apply(Setting::Pids(Some(64))),
        }
    }
}

/// The abilities of a tree, and the reasons for those that it lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    missing: Vec<(Capability, String)>,
}

impl Capabilities {
    /// Returns whether the tree can do it.
    pub fn has(&self, capability: Capability) -> bool {
        !self.missing.iter().any(|(missing, _)| *missing == capability)
    }

    /// Returns the abilities.
    pub fn present(&self) -> Vec<Capability> {
        Capability::ALL.into_iter().filter(|one| self.has(*one)).collect()
    }

    /// Returns the missing abilities, each with the answer of the kernel.
    pub fn missing(&self) -> &[(Capability, String)] {
        &self.missing
    }
}

impl Tree {
    /// Tries each capability in a group that is removed again. `cpu` is a processor that is in no partition.
    ///
    /// # Errors
    /// [`CgroupError::Io`] if the group cannot be created or removed: the tree is unusable.
    pub fn probe(&self, cpu: u32) -> Result<Capabilities, CgroupError> {
        // No job has this number.
        let job = self.job(0, std::process::id());
        job.create()?;
        let tried = Capability::ALL.map(|one| (one, one.try_on(&job, cpu)));
        job.remove()?;
        let failed = tried.into_iter().filter_map(|(one, tried)| Some((one, tried.err()?.to_string())));
        Ok(Capabilities { missing: failed.collect() })
    }
}
