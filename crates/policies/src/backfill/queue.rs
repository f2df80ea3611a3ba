//! The wait queue of the engine, in the order of the queue and in that of the candidates.

use miserly_core::{JobId, Ledger, Time};

use crate::shared::{Admits, Key, Order, Position, QueueIndex, Waiting};

/// The waiting jobs in one order, or in two.
///
/// It stores the keys under which a job was entered, because keys may change with time.
#[derive(Debug, Default)]
pub(super) struct WaitQueue {
    order: Order,
    candidate_order: Order,
    /// In the order of the queue.
    jobs: QueueIndex,
    /// In the order of the candidates, if that differs.
    candidates: Option<QueueIndex>,
    /// Indexed by job.
    slots: Vec<Option<Slot>>,
    /// The jobs that were inserted since the last pass, including those that left.
    arrived: Vec<JobId>,
    /// The position at which the search for a successor ended.
    position: Position,
}

/// A waiting job.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The job with its key in the queue.
    waiting: Waiting,
    /// Its key among the candidates.
    candidate: Key,
    /// Whether it was inserted since the last pass.
    is_new: bool,
}

impl WaitQueue {
    pub(super) fn new(order: Order, candidate_order: Order) -> WaitQueue {
        let candidates = (candidate_order != order).then(QueueIndex::new);
        WaitQueue { order, candidate_order, candidates, ..WaitQueue::default() }
    }

    /// Returns whether the candidates have an order of their own.
    pub(super) fn has_candidates(&self) -> bool {
        self.candidates.is_some()
    }

    pub(super) fn insert(&mut self, now: Time, job: JobId, ledger: &Ledger) {
        let entry = ledger.entry(job);
        let waiting = Waiting::new(&self.order, now, job, entry);
        let mut candidate = waiting.key;
        self.jobs.insert(waiting);
        if let Some(candidates) = &mut self.candidates {
            candidate = self.candidate_order.key(now, entry);
            candidates.insert(Waiting { key: candidate, ..waiting });
        }
        if self.slots.len() <= job.index() {
            self.slots.resize(job.index() + 1, None);
        }
        self.slots[job.index()] = Some(Slot { waiting, candidate, is_new: true });
        self.arrived.push(job);
    }

    /// Removes a job. Returns it if it was in the queue.
    pub(super) fn remove(&mut self, job: JobId) -> Option<Waiting> {
        let Slot { waiting, candidate, .. } = self.slots.get_mut(job.index())?.take()?;
        self.jobs.remove(&waiting.key);
        if let Some(candidates) = &mut self.candidates {
            candidates.remove(&candidate);
        }
        Some(waiting)
    }

    /// Sorts the queue again as of `now`, if its order changes with time.
    pub(super) fn sort_again(&mut self, now: Time, ledger: &Ledger) {
        let WaitQueue { order, candidate_order, jobs, candidates, slots, .. } = self;
        if order.changes() {
            jobs.rekey(|held| {
                let key = order.key(now, ledger.entry(held.job));
                if let Some(slot) = &mut slots[held.job.index()] {
                    slot.waiting.key = key;
                }
                key
            });
        }
        if let Some(candidates) = candidates.as_mut().filter(|_| candidate_order.changes()) {
            candidates.rekey(|held| {
                let key = candidate_order.key(now, ledger.entry(held.job));
                if let Some(slot) = &mut slots[held.job.index()] {
                    slot.candidate = key;
                }
                key
            });
        }
    }

    fn slot(&self, job: JobId) -> Option<&Slot> {
        self.slots.get(job.index())?.as_ref()
    }

    /// Returns the job with its key in the queue.
    pub(super) fn get(&self, job: JobId) -> Option<Waiting> {
        self.slot(job).map(|slot| slot.waiting)
    }

    /// Returns the head of the queue.
    pub(super) fn first(&self) -> Option<&Waiting> {
        self.jobs.first()
    }

    /// Returns the jobs in the order of the queue.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.jobs.iter()
    }

    /// Returns the jobs in the order of the queue, with a search for the narrow ones.
    pub(super) fn jobs(&self) -> &QueueIndex {
        &self.jobs
    }

    /// Returns the job after `last` in the queue, or the head for `None`.
    pub(super) fn successor(&mut self, last: Option<Key>) -> Option<Waiting> {
        self.jobs.successor(last.as_ref(), &mut self.position)
    }

    /// Returns the next job of the queue that `room` admits.
    pub(super) fn next(&self, last: Option<&Key>, room: &impl Admits) -> Option<Waiting> {
        self.jobs.next_admitted(last, room)
    }

    /// Returns the next candidate that `room` admits.
    pub(super) fn next_candidate(&self, last: Option<&Key>, room: &impl Admits) -> Option<Waiting> {
        self.candidates.as_ref().unwrap_or(&self.jobs).next_admitted(last, room)
    }

    /// Returns whether the job was inserted since the last pass.
    pub(super) fn is_new(&self, job: JobId) -> bool {
        self.slot(job).is_some_and(|slot| slot.is_new)
    }

    /// Fills `candidates` with the jobs that were inserted since the last pass, in the order of the
    /// candidates.
    pub(super) fn new_candidates(&self, candidates: &mut Vec<Waiting>) {
        let slots = self.arrived.iter().filter_map(|job| self.slot(*job));
        let own = self.has_candidates();
        let key = |slot: &Slot| if own { slot.candidate } else { slot.waiting.key };
        let candidate = |slot: &Slot| Waiting { key: key(slot), ..slot.waiting };
        candidates.clear();
        candidates.extend(slots.map(candidate));
        candidates.sort_unstable_by_key(|candidate| candidate.key);
    }

    /// Ends a pass: no job is new any more.
    pub(super) fn settle(&mut self) {
        for job in self.arrived.drain(..) {
            if let Some(Some(slot)) = self.slots.get_mut(job.index()) {
                slot.is_new = false;
            }
        }
    }
}
