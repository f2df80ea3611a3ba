//! Which processors are whose, by number.

use std::collections::BTreeSet;

/// The processors for jobs, and those that nobody has in a window.
#[derive(Clone, Debug)]
pub(super) struct Cpus {
    all: BTreeSet<u32>,
    free: BTreeSet<u32>,
}

impl Cpus {
    pub(super) fn new(all: &[u32]) -> Cpus {
        let all: BTreeSet<u32> = all.iter().copied().collect();
        Cpus { free: all.clone(), all }
    }

    /// All of them: where whoever runs early may run.
    pub(super) fn all(&self) -> Vec<u32> {
        self.all.iter().copied().collect()
    }

    /// Takes the lowest that are free, as many as there are; the ledger has seen to it that there are enough.
    pub(super) fn take(&mut self, count: u64) -> Vec<u32> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let taken: Vec<u32> = self.free.iter().copied().take(count).collect();
        for cpu in &taken {
            self.free.remove(cpu);
        }
        taken
    }

    /// Takes these, which a job had before.
    pub(super) fn take_these(&mut self, cpus: &[u32]) {
        for cpu in cpus {
            self.free.remove(cpu);
        }
    }

    pub(super) fn give(&mut self, cpus: &[u32]) {
        self.free.extend(cpus.iter().filter(|cpu| self.all.contains(cpu)));
    }
}
