//! Allocation of processors by number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use miserly_core::{Calendar, PeSet, Time};

use crate::Setup;
use crate::cpus::numbered::{NumberedCpus, QueueCpus};
use crate::cpus::topology::CpuChoice;

/// The processors for jobs, and the number of windows in which each is allocated.
///
/// Invariant: a processor is allocated once, unless processors were lost or the jobs of a queue are time-sliced.
#[derive(Clone, Debug)]
pub(crate) struct CpuAllocator {
    /// The processors that all queues share.
    all: BTreeSet<u32>,
    held: BTreeMap<u32, u32>,
    choice: CpuChoice,
    /// The processors of each queue whose policy chooses processors. Its ledger tracks the free ones.
    own: BTreeMap<String, Vec<u32>>,
    /// The most processors that the other queues have together at any time.
    together: u64,
    /// The online processors, also those not for jobs; `None` means all.
    online: Option<BTreeSet<u32>>,
    /// Processors of attempts without a record. They count as offline.
    withheld: BTreeSet<u32>,
    /// Whether other processors may be lost than when the jobs last left such ones.
    pub(crate) is_changed: bool,
    /// Whether processors were ever withheld, so that the pools have to grow again.
    withholds: bool,
    /// The queue that has the shared processors alone.
    alone: Option<String>,
    /// The processors of each queue, for readers on other threads.
    numbered: Arc<QueueCpus>,
}

impl CpuAllocator {
    pub(crate) fn new(setup: &Setup) -> CpuAllocator {
        let own = setup.own_cpus();
        let mut all: BTreeSet<u32> = setup.cpus.iter().copied().collect();
        all.retain(|cpu| !own.values().flatten().any(|one| one == cpu));
        let mut sharing =
            setup.queues.iter().map(|queue| &queue.name).filter(|name| !own.contains_key(*name));
        let alone = sharing.next().filter(|_| sharing.next().is_none()).cloned();
        let mut cpus = CpuAllocator {
            all,
            held: BTreeMap::new(),
            choice: CpuChoice::new(&setup.topology, setup.whole_cores),
            together: together(setup, &own),
            own,
            online: None,
            withheld: BTreeSet::new(),
            is_changed: true,
            withholds: false,
            alone,
            numbered: Arc::default(),
        };
        cpus.number();
        cpus
    }

    /// Returns an allocator for another setup of the same machine, with all processors free.
    pub(crate) fn anew(&self, setup: &Setup) -> CpuAllocator {
        let mut cpus = CpuAllocator {
            online: self.online.clone(),
            withheld: self.withheld.clone(),
            withholds: self.withholds,
            ..CpuAllocator::new(setup)
        };
        cpus.number();
        cpus
    }

    /// Returns the processors of each queue by number, without the queues that share theirs.
    pub(crate) fn numbered(&self) -> &Arc<QueueCpus> {
        &self.numbered
    }

    /// Makes the processors of each queue again.
    fn number(&mut self) {
        let offline = |cpus: &[u32]| cpus.iter().copied().filter(|cpu| !self.is_online(*cpu)).collect();
        let numbered = |cpus: &[u32]| NumberedCpus { all: cpus.to_vec(), offline: offline(cpus) };
        let mut queues: QueueCpus =
            self.own.iter().map(|(name, cpus)| (name.clone(), numbered(cpus))).collect();
        if let Some(name) = &self.alone {
            let shared: Vec<u32> = self.all.iter().copied().collect();
            queues.insert(name.clone(), numbered(&shared));
        }
        self.numbered = Arc::new(queues);
    }

    /// Allocates the processors of a queue's own that its policy chose.
    ///
    /// A lost processor is replaced by a free one, since the ledger always loses its highest numbers. If none is free, processors
    /// are shared, as in [`take`](CpuAllocator::take).
    pub(crate) fn take_named(&mut self, queue: &str, pes: &PeSet) -> Vec<u32> {
        let own = self.own.get(queue).map(Vec::as_slice).unwrap_or_default();
        let numbers = pes.ranges().iter().flat_map(|(low, high)| *low..=*high);
        let named: BTreeSet<u32> =
            numbers.filter_map(|pe| own.get(usize::try_from(pe).ok()?)).copied().collect();
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

    /// Allocates the processors that the policy of a time-sliced queue chose. Other jobs of the queue may have them, too.
    ///
    /// A lost processor is replaced by one that the ledger lost instead, since the ledger always loses its highest numbers. A
    /// replacement may be shared.
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

    /// Returns whether a queue has processors of its own.
    pub(crate) fn has_own(&self, queue: &str) -> bool {
        self.own.contains_key(queue)
    }

    /// Returns the processors of a queue of its own.
    pub(crate) fn own(&self, queue: &str) -> Option<&Vec<u32>> {
        self.own.get(queue)
    }

    /// Allocates free processors that are online, by the topology of the machine.
    ///
    /// The ledger guarantees that there are enough, unless some have just been lost. Then there may be fewer, and if none is free,
    /// processors are shared. Those to `avoid` are planned for others, which would get other ones.
    pub(crate) fn take(&mut self, count: u64, avoid: &BTreeSet<u32>) -> Vec<u32> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let free = self.free();
        let mut taken = self.choose(&free.difference(avoid).copied().collect(), count);
        if taken.len() < count {
            taken = self.choose(&free, count);
        }
        if taken.is_empty() {
            taken = self.all.iter().copied().filter(|cpu| self.is_online(*cpu)).take(count).collect();
        }
        self.take_these(&taken);
        taken
    }

    /// Allocates `count` processors in place of those that a job has: some of them, or all of them and free ones.
    ///
    /// There may be fewer, as in [`take`](CpuAllocator::take), and one at least.
    pub(crate) fn resize(&mut self, cpus: &[u32], count: u64) -> Vec<u32> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let own: BTreeSet<u32> = cpus.iter().copied().collect();
        let mut kept = if count < own.len() { self.choose(&own, count) } else { cpus.to_vec() };
        kept.extend(self.choose(&self.free(), count.saturating_sub(kept.len())));
        if kept.is_empty() {
            kept = cpus.iter().copied().take(count).collect();
        }
        kept.sort_unstable();
        self.give(cpus);
        self.take_these(&kept);
        kept
    }

    /// Chooses some of these free processors by the topology of the machine. Allocates none.
    pub(crate) fn choose(&self, free: &BTreeSet<u32>, count: usize) -> Vec<u32> {
        self.choice.choose(free, |cpu| self.all.contains(&cpu) && self.is_online(cpu), count)
    }

    /// Allocates processors that a job had before.
    pub(crate) fn take_these(&mut self, cpus: &[u32]) {
        for cpu in cpus {
            *self.held.entry(*cpu).or_default() += 1;
        }
    }

    /// Allocates processors if all of them are free. Returns whether they were.
    pub(crate) fn take_all_of(&mut self, cpus: &[u32]) -> bool {
        let free = cpus.iter().all(|cpu| self.is_free(*cpu));
        if free {
            self.take_these(cpus);
        }
        free
    }

    /// Returns the shared processors that are online and not allocated.
    pub(crate) fn free(&self) -> BTreeSet<u32> {
        self.all.iter().copied().filter(|cpu| self.is_free(*cpu) && self.is_online(*cpu)).collect()
    }

    fn is_free(&self, cpu: u32) -> bool {
        self.all.contains(&cpu) && !self.held.contains_key(&cpu)
    }

    /// Sets the online processors.
    pub(crate) fn set_online(&mut self, online: &[u32]) {
        self.online = Some(online.iter().copied().collect());
        self.is_changed = true;
        self.number();
    }

    /// Sets the processors that no job gets, as if they were offline.
    pub(crate) fn withhold(&mut self, cpus: BTreeSet<u32>) {
        self.withheld = cpus;
        (self.withholds, self.is_changed) = (true, true);
        self.number();
    }

    fn is_online(&self, cpu: u32) -> bool {
        self.online.as_ref().is_none_or(|online| online.contains(&cpu)) && !self.withheld.contains(&cpu)
    }

    /// Returns whether it is known which processors are online.
    fn knows_online(&self) -> bool {
        self.online.is_some() || self.withholds
    }

    /// Returns whether any of the processors is offline or withheld.
    pub(crate) fn lacks_any(&self, cpus: &[u32]) -> bool {
        self.online_of(cpus) < cpus.len() as u64
    }

    /// Returns whether any of the processors is offline, and not only withheld.
    pub(crate) fn has_offline(&self, cpus: &[u32]) -> bool {
        self.online.as_ref().is_some_and(|online| cpus.iter().any(|cpu| !online.contains(cpu)))
    }

    /// Returns how many of the processors are online.
    pub(crate) fn online_of(&self, cpus: &[u32]) -> u64 {
        cpus.iter().filter(|cpu| self.is_online(**cpu)).count() as u64
    }

    /// Frees the processors of a job.
    pub(crate) fn give(&mut self, cpus: &[u32]) {
        for cpu in cpus {
            match self.held.get_mut(cpu) {
                Some(holders) if *holders > 1 => *holders -= 1,
                _ => drop(self.held.remove(cpu)),
            }
        }
    }

    /// Returns the number of shared processors that are online, if it is known.
    pub(crate) fn shared_online(&self) -> Option<u64> {
        let online = || self.all.iter().filter(|cpu| self.is_online(**cpu)).count() as u64;
        self.knows_online().then(online)
    }

    /// Returns the most processors that the queues without processors of their own have together at any time.
    pub(crate) const fn together_most(&self) -> u64 {
        self.together
    }

    /// Returns the number of a queue's own processors that are offline.
    pub(crate) fn own_lost(&self, queue: &str) -> Option<u64> {
        let own = self.own.get(queue)?;
        Some(own.iter().filter(|cpu| !self.is_online(**cpu)).count() as u64)
    }
}

/// Returns the most processors that the queues without processors of their own have together at any time.
fn together(setup: &Setup, own: &BTreeMap<String, Vec<u32>>) -> u64 {
    let pools = setup.queues.iter().filter(|queue| !own.contains_key(&queue.name)).map(|queue| &queue.pool);
    let pools: Vec<&Calendar> = pools.collect();
    let at = |at: Time| pools.iter().map(|pool| pool.at(at).cpus_count().get()).sum();
    instants_of(&pools).into_iter().map(at).max().unwrap_or_default()
}

/// Returns the instants at which any of the pools changes: once for each different state of all.
pub(crate) fn instants_of(pools: &[&Calendar]) -> Vec<Time> {
    let exceptions = pools.iter().flat_map(|pool| pool.exceptions());
    let first = exceptions.map(|one| one.from).min();
    let regular = pools.iter().map(|pool| pool.regular_from()).max().unwrap_or(Time::ZERO).max(Time::ZERO);
    let period = pools.iter().filter(|pool| pool.repeats()).map(|pool| pool.period()).max();
    let until = period.map_or(regular, |period| regular + period);
    let begin = first.unwrap_or(Time::ZERO).min(Time::ZERO);
    let mut instants = vec![begin];
    for pool in pools {
        instants.extend(pool.changes_after(begin).take_while(|at| *at <= until));
    }
    instants.sort_unstable();
    instants.dedup();
    instants
}
