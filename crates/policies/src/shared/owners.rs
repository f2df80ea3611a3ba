//! The waiting jobs in an order by usage: a queue for each owner.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use miserly_core::Time;

use super::changing::Moment;
use super::order::{Key, Used};
use super::queue::{QueueIndex, Waiting};
use super::staircase::{Admits, Everything};

/// The waiting jobs in an order that never changes among the jobs of one owner
/// ([`Order::ranks_owners`](super::Order::ranks_owners)), with a walk through those that fit.
///
/// An owner is a user and a group. The values of jobs of different owners cross at any time, so all jobs would be sorted
/// again at each pass. Instead, each owner has a queue in the order of arrival, and a [walk](OwnerWalk) merges them. It
/// computes bounds on the ranks of the first job of each queue that fits, and an exact rank only where the bounds overlap.
///
/// With n jobs and chunks of c, insertion and removal are O(c + n / c). A walk is O(n / c + u) for all u owners that ever had a
/// job, with a bound for each that has one which fits, and O(log u) for each job that it returns.
#[derive(Clone, Debug, Default)]
pub struct OwnerIndex {
    owners: BTreeMap<[Option<u32>; 2], usize>,
    /// The jobs of each owner, in the order of arrival.
    queues: Vec<QueueIndex>,
    /// The queue of each job, by job.
    queue_of: Vec<usize>,
    /// The number of jobs.
    len: usize,
    /// The head of the queue at an instant, if neither a job was inserted since nor this one removed.
    first: Option<(Time, Waiting)>,
}

/// A walk through the jobs in their order, at one instant.
///
/// Jobs may be removed during a walk, but not inserted. The room for jobs may become smaller, but not larger.
#[derive(Debug, Default)]
pub struct OwnerWalk {
    has_begun: bool,
    /// The usage of each owner with a job that fits, by queue.
    used: Vec<Option<Used>>,
    /// The next job of each queue.
    next: BinaryHeap<Reverse<Next>>,
}

/// The next job of a queue, by its least possible rank. One whose rank is only a bound comes before equal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    least_rank: i64,
    /// Its key, once that is computed.
    key: Option<Key>,
    queue: usize,
    /// Its key is that of the order of arrival.
    waiting: Waiting,
}

impl OwnerIndex {
    /// Returns whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Inserts a job, with its key in the order of arrival.
    pub fn insert(&mut self, at: &Moment<'_>, waiting: Waiting) {
        self.first = None;
        self.len += 1;
        let request = at.ledger.request(waiting.job);
        let next = self.queues.len();
        let queue = *self.owners.entry([request.user, request.group]).or_insert(next);
        if queue == next {
            self.queues.push(QueueIndex::new());
        }
        self.queues[queue].insert(waiting);
        if self.queue_of.len() <= waiting.job.index() {
            self.queue_of.resize(waiting.job.index() + 1, 0);
        }
        self.queue_of[waiting.job.index()] = queue;
    }

    /// Removes a job, by the same values as it was inserted with.
    pub fn remove(&mut self, waiting: &Waiting) {
        if self.first.is_some_and(|(_, first)| first.job == waiting.job) {
            self.first = None;
        }
        let queue = self.queue_of.get(waiting.job.index()).and_then(|queue| self.queues.get_mut(*queue));
        if queue.is_some_and(|queue| queue.remove(&waiting.key)) {
            self.len -= 1;
        }
    }

    /// Returns the head of the queue.
    pub fn first(&mut self, at: &Moment<'_>) -> Option<Waiting> {
        if let Some((_, first)) = self.first.filter(|(then, _)| *then == at.now) {
            return Some(first);
        }
        let first = self.next(at, &mut OwnerWalk::default(), None, &Everything)?;
        self.first = Some((at.now, first));
        Some(first)
    }

    /// Returns the first job of a walk that fits into the room, behind `after` (or of all, if `None`).
    ///
    /// `after` is not before that of the last call. A job that was removed from the queue must not be behind it.
    pub fn next(
        &self,
        at: &Moment<'_>,
        walk: &mut OwnerWalk,
        after: Option<&Key>,
        room: &impl Admits,
    ) -> Option<Waiting> {
        if !walk.has_begun {
            walk.has_begun = true;
            walk.used.resize(self.queues.len(), None);
            for queue in 0..self.queues.len() {
                self.go_on(at, walk, queue, None, room);
            }
        }
        loop {
            let Next { key, queue, waiting, .. } = walk.next.peek()?.0;
            let fits = room.admits(waiting.procs, waiting.span);
            match key {
                Some(key) if fits && Some(&key) > after => return Some(Waiting { key, ..waiting }),
                None if fits => {
                    walk.next.pop();
                    let used = walk.used[queue].unwrap_or_default();
                    let key = at.order.key_with(at.now, at.ledger.entry(waiting.job), used);
                    walk.next.push(Reverse(Next {
                        least_rank: key.primary(),
                        key: Some(key),
                        queue,
                        waiting,
                    }));
                }
                // It is behind `after`, or the room became smaller.
                _ => {
                    walk.next.pop();
                    self.go_on(at, walk, queue, Some(&waiting.key), room);
                }
            }
        }
    }

    /// Adds to a walk the first job of a queue that fits, behind this key in the order of arrival.
    fn go_on(
        &self,
        at: &Moment<'_>,
        walk: &mut OwnerWalk,
        queue: usize,
        after: Option<&Key>,
        room: &impl Admits,
    ) {
        let Some(waiting) = self.queues[queue].next_admitted(after, room) else { return };
        let entry = at.ledger.entry(waiting.job);
        let used =
            *walk.used[queue].get_or_insert_with(|| Used::without_ranks(&entry.request, at.now, at.ledger));
        let least_rank = at.order.least_rank(at.now, entry, used);
        walk.next.push(Reverse(Next { least_rank, key: None, queue, waiting }));
    }
}
