//! The queue of a policy on hosts: who waits, in the order of the queue and in that of the candidates.

use miserly_core::{JobId, Ledger, Span, Time};

use super::super::waiting;
use crate::shared::{Admits, Key, Order, QueueIndex, Waiting};

/// Nobody is too wide.
pub(super) struct Anyone;

impl Admits for Anyone {
    fn admits(&self, _procs: u32, _span: Span) -> bool {
        true
    }
}

/// The waiting jobs in one order, or in two.
///
/// It knows under which keys a job stands: whoever takes it out need not know as of when these were made.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) order: Order,
    candidates_order: Order,
    /// In the order of the queue.
    jobs: QueueIndex,
    /// In the order of the candidates, where that is another one.
    candidates: Option<QueueIndex>,
    /// The keys of each job in both, by its handle.
    keys: Vec<Option<(Key, Key)>>,
}

impl Queue {
    /// Nobody waits.
    pub(super) fn of(order: Order, candidates_order: Order) -> Queue {
        let candidates = (candidates_order != order).then(QueueIndex::new);
        Queue { order, candidates_order, candidates, ..Queue::default() }
    }

    pub(super) fn clear(&mut self) {
        *self = Queue::of(std::mem::take(&mut self.order), std::mem::take(&mut self.candidates_order));
    }

    /// Whether the candidates have an order of their own.
    pub(super) fn has_candidates(&self) -> bool {
        self.candidates.is_some()
    }

    /// Whether one of its orders goes by how many jobs have passed one.
    pub(super) fn counts_bypasses(&self) -> bool {
        self.order.counts_bypasses() || self.candidates_order.counts_bypasses()
    }

    pub(super) fn insert(&mut self, now: Time, job: JobId, ledger: &Ledger) {
        let entry = ledger.entry(job);
        let held = waiting(&self.order, now, job, entry);
        let candidate = waiting(&self.candidates_order, now, job, entry);
        self.jobs.insert(held);
        if let Some(candidates) = &mut self.candidates {
            candidates.insert(candidate);
        }
        if self.keys.len() <= job.index() {
            self.keys.resize(job.index() + 1, None);
        }
        self.keys[job.index()] = Some((held.key, candidate.key));
    }

    /// Takes a job out, if it is in.
    pub(super) fn remove(&mut self, job: JobId) {
        let Some((key, candidate)) = self.keys.get_mut(job.index()).and_then(Option::take) else { return };
        self.jobs.remove(&key);
        if let Some(candidates) = &mut self.candidates {
            candidates.remove(&candidate);
        }
    }

    /// Sorts the queue again as of `now`, where its order changes with time.
    pub(super) fn sort_again(&mut self, now: Time, ledger: &Ledger) {
        let Queue { order, candidates_order, jobs, candidates, keys } = self;
        if order.changes() {
            jobs.rekey(|held| {
                let key = order.key(now, ledger.entry(held.job));
                if let Some((kept, _)) = &mut keys[held.job.index()] {
                    *kept = key;
                }
                key
            });
        }
        if let Some(candidates) = candidates.as_mut().filter(|_| candidates_order.changes()) {
            candidates.rekey(|held| {
                let key = candidates_order.key(now, ledger.entry(held.job));
                if let Some((_, kept)) = &mut keys[held.job.index()] {
                    *kept = key;
                }
                key
            });
        }
    }

    /// The job's place in the queue, if it is in.
    pub(super) fn key(&self, job: JobId) -> Option<Key> {
        self.keys.get(job.index()).copied().flatten().map(|(key, _)| key)
    }

    /// The job as it stands in the queue.
    pub(super) fn get(&self, job: JobId, ledger: &Ledger) -> Option<Waiting> {
        Some(Waiting { key: self.key(job)?, ..waiting(&Order::ARRIVAL, Time::ZERO, job, ledger.entry(job)) })
    }

    /// The head of the queue.
    pub(super) fn first(&self) -> Option<JobId> {
        self.jobs.first().map(|first| first.job)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.jobs.iter()
    }

    pub(super) fn next(&self, last: Option<&Key>, room: &impl Admits) -> Option<Waiting> {
        self.jobs.next_admitted(last, room)
    }

    /// Some jobs of the queue as candidates, in their order.
    pub(super) fn as_candidates(&self, jobs: impl Iterator<Item = JobId>, ledger: &Ledger) -> Vec<Waiting> {
        let candidate = |job: JobId| {
            let (in_queue, as_candidate) = self.keys.get(job.index()).copied().flatten()?;
            let key = if self.has_candidates() { as_candidate } else { in_queue };
            Some(Waiting { key, ..waiting(&Order::ARRIVAL, Time::ZERO, job, ledger.entry(job)) })
        };
        let mut candidates: Vec<Waiting> = jobs.filter_map(candidate).collect();
        candidates.sort_unstable_by_key(|candidate| candidate.key);
        candidates
    }

    pub(super) fn next_candidate(&self, last: Option<&Key>, room: &impl Admits) -> Option<Waiting> {
        self.candidates.as_ref().unwrap_or(&self.jobs).next_admitted(last, room)
    }
}
