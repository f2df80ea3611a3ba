//! Which processors are whose, by number.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::PeSet;

use crate::Setup;

/// The processors for jobs, and how many have each in a window: one at most, unless there are fewer processors than jobs were given.
#[derive(Clone, Debug)]
pub(crate) struct CpuAllocator {
    /// Those that no queue has for itself.
    all: BTreeSet<u32>,
    held: BTreeMap<u32, u32>,
    /// Those of queues whose policy decides which of them a job has: its ledger knows which are free.
    own: BTreeMap<String, Vec<u32>>,
    /// Those that are online, jobs' or not; all, as long as nobody says.
    online: Option<BTreeSet<u32>>,
}

impl CpuAllocator {
    pub(crate) fn new(setup: &Setup) -> CpuAllocator {
        let own = setup.own_cpus();
        let mut all: BTreeSet<u32> = setup.cpus.iter().copied().collect();
        all.retain(|cpu| !own.values().flatten().any(|one| one == cpu));
        CpuAllocator { all, held: BTreeMap::new(), own, online: None }
    }

    /// These for jobs, all free, on the same machine.
    pub(crate) fn anew(&self, setup: &Setup) -> CpuAllocator {
        CpuAllocator { online: self.online.clone(), ..CpuAllocator::new(setup) }
    }

    /// Takes those of a queue's own that its policy calls so. For each that is lost, or that a job has whose own was lost, another that is
    /// online and that nobody has: the ledger loses its highest numbers, whichever processor is gone. Where there is none, others are shared,
    /// as [`take`](CpuAllocator::take) does.
    pub(crate) fn take_named(&mut self, queue: &str, pes: &PeSet) -> Vec<u32> {
        let own = self.own.get(queue).map(Vec::as_slice).unwrap_or_default();
        let numbers = pes.ranges().iter().flat_map(|(low, high)| *low..=*high);
        let named: Vec<u32> = numbers.filter_map(|pe| own.get(usize::try_from(pe).ok()?)).copied().collect();
        let others = own.iter().filter(|cpu| !named.contains(cpu));
        let there = || named.iter().chain(others.clone()).copied().filter(|cpu| self.is_online(*cpu));
        let mut taken: Vec<u32> =
            there().filter(|cpu| !self.held.contains_key(cpu)).take(named.len()).collect();
        if taken.is_empty() {
            taken = there().take(named.len()).collect();
        }
        taken.sort_unstable();
        self.take_these(&taken);
        taken
    }

    /// Takes those of a queue's own that its policy calls so, whoever else has them: its jobs take turns. In place of one that is lost goes
    /// the next that the ledger has lost instead, since that is always its highest; who is on one of these shares it with whoever is there.
    pub(crate) fn take_shared(&mut self, queue: &str, pes: &PeSet) -> Vec<u32> {
        let own = self.own.get(queue).map(Vec::as_slice).unwrap_or_default();
        let kept = own.iter().filter(|cpu| self.is_online(**cpu)).count();
        let (low, high) = own.split_at(kept);
        let mut instead = high.iter().copied().filter(|cpu| self.is_online(*cpu));
        let mut there: Vec<u32> = vec![];
        for cpu in low {
            there.extend(if self.is_online(*cpu) { Some(*cpu) } else { instead.next() });
        }
        let numbers = pes.ranges().iter().flat_map(|(low, high)| *low..=*high);
        let place = |pe: u32| usize::try_from(pe).ok()?.checked_rem(there.len());
        let taken: BTreeSet<u32> = numbers.filter_map(|pe| there.get(place(pe)?)).copied().collect();
        let taken: Vec<u32> = taken.into_iter().collect();
        self.take_these(&taken);
        taken
    }

    /// Whether a queue has processors of its own.
    pub(crate) fn has_own(&self, queue: &str) -> bool {
        self.own.contains_key(queue)
    }

    /// The processors that a queue has for itself, if it has any.
    pub(crate) fn own(&self, queue: &str) -> Option<&Vec<u32>> {
        self.own.get(queue)
    }

    /// Takes the lowest that are free and online, as many as there are. The ledger has seen to it that there are enough, unless some
    /// have just gone; where none is free, others are shared, since a job cannot be nowhere.
    pub(crate) fn take(&mut self, count: u64) -> Vec<u32> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut taken: Vec<u32> = self.free().into_iter().take(count).collect();
        if taken.is_empty() {
            taken = self.all.iter().copied().filter(|cpu| self.is_online(*cpu)).take(count).collect();
        }
        self.take_these(&taken);
        taken
    }

    /// Takes these, which a job had before.
    pub(crate) fn take_these(&mut self, cpus: &[u32]) {
        for cpu in cpus {
            *self.held.entry(*cpu).or_default() += 1;
        }
    }

    /// Takes these, if all of them are free.
    pub(crate) fn take_all_of(&mut self, cpus: &[u32]) -> bool {
        let free = cpus.iter().all(|cpu| self.is_free(*cpu));
        if free {
            self.take_these(cpus);
        }
        free
    }

    /// Those that nobody has in a window, and that are online.
    pub(crate) fn free(&self) -> BTreeSet<u32> {
        self.all.iter().copied().filter(|cpu| self.is_free(*cpu) && self.is_online(*cpu)).collect()
    }

    fn is_free(&self, cpu: u32) -> bool {
        self.all.contains(&cpu) && !self.held.contains_key(&cpu)
    }

    /// Only these are online now.
    pub(crate) fn set_online(&mut self, online: &[u32]) {
        self.online = Some(online.iter().copied().collect());
    }

    fn is_online(&self, cpu: u32) -> bool {
        self.online.as_ref().is_none_or(|online| online.contains(&cpu))
    }

    /// Whether any of these is not online.
    pub(crate) fn lacks_any(&self, cpus: &[u32]) -> bool {
        cpus.iter().any(|cpu| !self.is_online(*cpu))
    }

    /// Gives back what a job had.
    pub(crate) fn give(&mut self, cpus: &[u32]) {
        for cpu in cpus {
            match self.held.get_mut(cpu) {
                Some(holders) if *holders > 1 => *holders -= 1,
                _ => drop(self.held.remove(cpu)),
            }
        }
    }

    /// How many of those are online that no queue has for itself, if somebody has said.
    pub(crate) fn shared_online(&self) -> Option<u64> {
        let online = self.online.as_ref()?;
        Some(self.all.iter().filter(|cpu| online.contains(cpu)).count() as u64)
    }

    /// How many of a queue's own are lost, if it has any.
    pub(crate) fn own_lost(&self, queue: &str) -> Option<u64> {
        let own = self.own.get(queue)?;
        Some(own.iter().filter(|cpu| !self.is_online(**cpu)).count() as u64)
    }
}
