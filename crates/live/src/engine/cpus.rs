//! Which processors are whose, by number.

use std::collections::BTreeSet;

/// The processors for jobs, and those that nobody has in a window.
#[derive(Clone, Debug)]
pub(super) struct Cpus {
    all: BTreeSet<u32>,
    free: BTreeSet<u32>,
    /// Those that are online, jobs' or not; all, as long as nobody says.
    online: Option<BTreeSet<u32>>,
}

impl Cpus {
    pub(super) fn new(all: &[u32]) -> Cpus {
        let all: BTreeSet<u32> = all.iter().copied().collect();
        Cpus { free: all.clone(), all, online: None }
    }

    /// These for jobs, all free, on the same machine.
    pub(super) fn anew(&self, all: &[u32]) -> Cpus {
        Cpus { online: self.online.clone(), ..Cpus::new(all) }
    }

    /// All of them: where whoever runs early may run.
    pub(super) fn all(&self) -> Vec<u32> {
        self.all.iter().copied().collect()
    }

    /// Takes the lowest that are free and online, as many as there are; the ledger has seen to it that there are enough.
    pub(super) fn take(&mut self, count: u64) -> Vec<u32> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let taken: Vec<u32> = self.free().into_iter().take(count).collect();
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

    /// Takes these, if all of them are free.
    pub(super) fn take_all_of(&mut self, cpus: &[u32]) -> bool {
        let free = cpus.iter().all(|cpu| self.free.contains(cpu));
        if free {
            self.take_these(cpus);
        }
        free
    }

    /// Those that nobody has in a window, and that are online.
    pub(super) fn free(&self) -> BTreeSet<u32> {
        self.free.iter().copied().filter(|cpu| self.is_online(*cpu)).collect()
    }

    /// Only these are online now.
    pub(super) fn set_online(&mut self, online: &[u32]) {
        self.online = Some(online.iter().copied().collect());
    }

    fn is_online(&self, cpu: u32) -> bool {
        self.online.as_ref().is_none_or(|online| online.contains(&cpu))
    }

    /// Whether any of these is not online.
    pub(super) fn lacks_any(&self, cpus: &[u32]) -> bool {
        cpus.iter().any(|cpu| !self.is_online(*cpu))
    }

    pub(super) fn give(&mut self, cpus: &[u32]) {
        self.free.extend(cpus.iter().filter(|cpu| self.all.contains(cpu)));
    }
}
