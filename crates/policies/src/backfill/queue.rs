//! The wait queue of the engine, in the order of the queue and in that of the candidates.

use miserly_core::{Context, JobId, Ledger, Time};

use crate::shared::{
    Admits, ChangingIndex, Everything, Key, Keys, Moment, Order, OwnerIndex, OwnerWalk, Position, QueueIndex,
    Waiting, Walk,
};

/// The waiting jobs in one order, or in two.
#[derive(Debug, Default)]
pub(super) struct WaitQueue {
    /// In the order of the queue.
    jobs: Ordered,
    /// In the order of the candidates, if that differs.
    candidates: Option<Ordered>,
    /// Indexed by job.
    slots: Vec<Option<Slot>>,
    /// The jobs that were inserted since the last pass, including those that left.
    arrived: Vec<JobId>,
}

/// The waiting jobs in one order.
#[derive(Debug, Default)]
struct Ordered {
    order: Order,
    index: Index,
}

/// A walk through the waiting jobs in one order, during a pass.
///
/// Jobs may leave the queue meanwhile. The room for jobs may become smaller, but not larger.
#[derive(Debug, Default)]
pub(super) struct QueueWalk {
    /// The last job.
    pub(super) last: Option<Key>,
    /// The position of the last job, if the queue is sorted.
    position: Position,
    /// The rest of the walk, if its order changes with time.
    changing: Walk,
    /// The rest of the walk, if it has a queue for each owner.
    owned: OwnerWalk,
}

impl QueueWalk {
    /// Returns a walk that begins behind this job.
    pub(super) fn behind(last: Option<Key>) -> QueueWalk {
        QueueWalk { last, ..QueueWalk::default() }
    }
}

#[derive(Debug)]
enum Index {
    /// Sorted by the keys of the last pass.
    Sorted(QueueIndex),
    /// Not sorted: the order changes with time.
    Changing(ChangingIndex),
    /// Sorted by owner.
    Owned(OwnerIndex),
}

impl Default for Index {
    fn default() -> Index {
        Index::Sorted(QueueIndex::new())
    }
}

/// A waiting job.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The job with its key in the order of arrival.
    waiting: Waiting,
    /// Its key in the queue, if that is sorted.
    key: Key,
    /// Its key among the candidates, if those are sorted.
    candidate: Key,
    /// Whether it was inserted since the last pass.
    is_new: bool,
}

impl Ordered {
    fn sorted(order: Order) -> Ordered {
        Ordered { order, ..Ordered::default() }
    }

    /// Returns the index for searches: sorted, unless the order changes with time.
    fn searched(order: Order) -> Ordered {
        if order.ages() {
            Ordered { order, index: Index::Changing(ChangingIndex::default()) }
        } else if order.ranks_owners() {
            Ordered { order, index: Index::Owned(OwnerIndex::default()) }
        } else {
            Ordered::sorted(order)
        }
    }

    /// Inserts a job with its key in the order of arrival. Returns its key in this order, if that is sorted.
    fn insert(&mut self, now: Time, ledger: &Ledger, waiting: Waiting) -> Key {
        match &mut self.index {
            Index::Sorted(index) => {
                let key = self.order.first_key(now, ledger.entry(waiting.job), ledger);
                index.insert(Waiting { key, ..waiting });
                key
            }
            Index::Changing(index) => {
                index.insert(&Moment { order: &self.order, now, ledger }, waiting);
                waiting.key
            }
            Index::Owned(index) => {
                index.insert(&Moment { order: &self.order, now, ledger }, waiting);
                waiting.key
            }
        }
    }

    fn remove(&mut self, waiting: &Waiting, key: &Key) {
        match &mut self.index {
            Index::Sorted(index) => drop(index.remove(key)),
            Index::Changing(index) => index.remove(waiting),
            Index::Owned(index) => index.remove(waiting),
        }
    }

    /// Sorts the jobs again as of `now`, if that is necessary. `store` gets each job with its new key.
    fn sort_again(&mut self, now: Time, ledger: &Ledger, mut store: impl FnMut(JobId, Key)) {
        let Index::Sorted(index) = &mut self.index else { return };
        if self.order.changes() {
            let mut keys = Keys::new(&self.order, now, ledger);
            index.rekey(|held| {
                let key = keys.key(ledger.entry(held.job));
                store(held.job, key);
                key
            });
        }
    }

    /// Returns the key of a job in this order, as of now.
    fn key(&self, context: &Context<'_>, job: JobId, sorted: Key) -> Key {
        match &self.index {
            Index::Sorted(_) => sorted,
            Index::Changing(_) | Index::Owned(_) => moment(&self.order, context).key(job),
        }
    }

    fn is_empty(&self) -> bool {
        match &self.index {
            Index::Sorted(index) => index.is_empty(),
            Index::Changing(index) => index.is_empty(),
            Index::Owned(index) => index.is_empty(),
        }
    }

    fn first(&mut self, context: &Context<'_>) -> Option<Waiting> {
        match &mut self.index {
            Index::Sorted(index) => index.first().copied(),
            Index::Changing(index) => index.first(&moment(&self.order, context)),
            Index::Owned(index) => index.first(&moment(&self.order, context)),
        }
    }

    /// Returns the next job of a walk.
    fn successor(&mut self, context: &Context<'_>, walk: &mut QueueWalk) -> Option<Waiting> {
        match &mut self.index {
            Index::Sorted(index) => index.successor(walk.last.as_ref(), &mut walk.position),
            Index::Changing(_) | Index::Owned(_) if walk.last.is_none() => self.first(context),
            Index::Changing(_) | Index::Owned(_) => self.next(context, walk, &Everything),
        }
    }

    /// Returns the next job of a walk that `room` admits.
    fn next(&mut self, context: &Context<'_>, walk: &mut QueueWalk, room: &impl Admits) -> Option<Waiting> {
        let last = walk.last.as_ref();
        match &mut self.index {
            Index::Sorted(index) => index.next_admitted(last, room),
            Index::Changing(index) => {
                index.next(&moment(&self.order, context), &mut walk.changing, last, room)
            }
            Index::Owned(index) => index.next(&moment(&self.order, context), &mut walk.owned, last, room),
        }
    }
}

fn moment<'a>(order: &'a Order, context: &'a Context<'_>) -> Moment<'a> {
    Moment { order, now: context.now(), ledger: context.ledger() }
}

impl WaitQueue {
    /// Returns a queue that is sorted: its jobs can be visited in order.
    pub(super) fn sorted(order: Order) -> WaitQueue {
        WaitQueue { jobs: Ordered::sorted(order), ..WaitQueue::default() }
    }

    /// Returns a queue for searches. `in_order`: jobs are visited in the order of the queue too.
    pub(super) fn searched(order: Order, candidate_order: Order, in_order: bool) -> WaitQueue {
        let candidates = (candidate_order != order).then(|| Ordered::searched(candidate_order));
        let jobs = if in_order { Ordered::sorted(order) } else { Ordered::searched(order) };
        WaitQueue { jobs, candidates, ..WaitQueue::default() }
    }

    /// Returns whether the candidates have an order of their own.
    pub(super) fn has_candidates(&self) -> bool {
        self.candidates.is_some()
    }

    pub(super) fn insert(&mut self, now: Time, job: JobId, ledger: &Ledger) {
        let waiting = Waiting::by_arrival(job, ledger.entry(job));
        let key = self.jobs.insert(now, ledger, waiting);
        let candidate =
            self.candidates.as_mut().map_or(key, |candidates| candidates.insert(now, ledger, waiting));
        if self.slots.len() <= job.index() {
            self.slots.resize(job.index() + 1, None);
        }
        self.slots[job.index()] = Some(Slot { waiting, key, candidate, is_new: true });
        self.arrived.push(job);
    }

    /// Removes a job. Returns its key in the queue, if the queue is sorted, and whether it was there.
    pub(super) fn remove(&mut self, job: JobId) -> Option<Key> {
        let Slot { waiting, key, candidate, .. } = self.slots.get_mut(job.index())?.take()?;
        self.jobs.remove(&waiting, &key);
        if let Some(candidates) = &mut self.candidates {
            candidates.remove(&waiting, &candidate);
        }
        Some(key)
    }

    /// Sorts the queue again as of `now`, if its order changes with time.
    pub(super) fn sort_again(&mut self, now: Time, ledger: &Ledger) {
        let WaitQueue { jobs, candidates, slots, .. } = self;
        let mut store = |job: JobId, set: fn(&mut Slot) -> &mut Key, key: Key| {
            if let Some(slot) = &mut slots[job.index()] {
                *set(slot) = key;
            }
        };
        jobs.sort_again(now, ledger, |job, key| store(job, |slot| &mut slot.key, key));
        if let Some(candidates) = candidates {
            candidates.sort_again(now, ledger, |job, key| store(job, |slot| &mut slot.candidate, key));
        }
    }

    fn slot(&self, job: JobId) -> Option<&Slot> {
        self.slots.get(job.index())?.as_ref()
    }

    /// Returns the job with its key in the queue.
    pub(super) fn get(&self, context: &Context<'_>, job: JobId) -> Option<Waiting> {
        let slot = self.slot(job)?;
        Some(Waiting { key: self.jobs.key(context, job, slot.key), ..slot.waiting })
    }

    /// Returns whether no job waits.
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Returns the head of the queue.
    pub(super) fn first(&mut self, context: &Context<'_>) -> Option<Waiting> {
        self.jobs.first(context)
    }

    /// Returns the jobs of a [sorted](WaitQueue::sorted) queue, with a search for the narrow ones.
    pub(super) fn jobs(&self) -> &QueueIndex {
        const NONE: &QueueIndex = &QueueIndex::new();
        match &self.jobs.index {
            Index::Sorted(index) => index,
            Index::Changing(_) | Index::Owned(_) => NONE,
        }
    }

    /// Returns the jobs of a [sorted](WaitQueue::sorted) queue, in its order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.jobs().iter()
    }

    /// Returns the next job of a walk through the queue.
    pub(super) fn successor(&mut self, context: &Context<'_>, walk: &mut QueueWalk) -> Option<Waiting> {
        self.jobs.successor(context, walk)
    }

    /// Returns the next job of a walk through the queue that `room` admits.
    pub(super) fn next(
        &mut self,
        context: &Context<'_>,
        walk: &mut QueueWalk,
        room: &impl Admits,
    ) -> Option<Waiting> {
        self.jobs.next(context, walk, room)
    }

    /// Returns the next job of a walk through the candidates that `room` admits.
    pub(super) fn next_candidate(
        &mut self,
        context: &Context<'_>,
        walk: &mut QueueWalk,
        room: &impl Admits,
    ) -> Option<Waiting> {
        self.candidates.as_mut().unwrap_or(&mut self.jobs).next(context, walk, room)
    }

    /// Returns whether the job was inserted since the last pass.
    pub(super) fn is_new(&self, job: JobId) -> bool {
        self.slot(job).is_some_and(|slot| slot.is_new)
    }

    /// Fills `candidates` with the jobs that were inserted since the last pass, in the order of the
    /// candidates.
    pub(super) fn new_candidates(&self, context: &Context<'_>, candidates: &mut Vec<Waiting>) {
        let slots = self.arrived.iter().filter_map(|job| self.slot(*job));
        let key = |slot: &Slot| match &self.candidates {
            Some(candidates) => candidates.key(context, slot.waiting.job, slot.candidate),
            None => self.jobs.key(context, slot.waiting.job, slot.key),
        };
        candidates.clear();
        candidates.extend(slots.map(|slot| Waiting { key: key(slot), ..slot.waiting }));
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
