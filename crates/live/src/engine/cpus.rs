//! Which processors are whose, by number.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::PeSet;

use super::Setup;

/// The processors for jobs, and those that nobody has in a window.
#[derive(Clone, Debug)]
pub(super) struct Cpus {
    /// Those that no queue has for itself.
    all: BTreeSet<u32>,
    free: BTreeSet<u32>,
    /// Those of queues whose policy decides which of them a job has: its ledger knows which are free.
    own: BTreeMap<String, Vec<u32>>,
    /// Those that are online, jobs' or not; all, as long as nobody says.
    online: Option<BTreeSet<u32>>,
}

impl Cpus {
    pub(super) fn new(setup: &Setup) -> Cpus {
        let own = setup.own_cpus();
        let mut all: BTreeSet<u32> = setup.cpus.iter().copied().collect();
        all.retain(|cpu| !own.values().flatten().any(|one| one == cpu));
        Cpus { free: all.clone(), all, own, online: None }
    }

    /// These for jobs, all free, on the same machine.
    pub(super) fn anew(&self, setup: &Setup) -> Cpus {
        Cpus { online: self.online.clone(), ..Cpus::new(setup) }
    }

    /// Those of a queue's own that its policy calls so.
    pub(super) fn named(&self, queue: &str, pes: &PeSet) -> Vec<u32> {
        let own = self.own.get(queue).map(Vec::as_slice).unwrap_or_default();
        let numbers = pes.ranges().iter().flat_map(|(low, high)| *low..=*high);
        numbers.filter_map(|pe| own.get(usize::try_from(pe).ok()?)).copied().collect()
    }

    /// Whether a queue has processors of its own.
    pub(super) fn has_own(&self, queue: &str) -> bool {
        self.own.contains_key(queue)
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
