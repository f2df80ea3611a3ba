//! A queue of future events: at most one entry per job, first in first out among equals.

use miserly_core::{JobId, Time};

/// An entry: its time, its rank among those of the same instant, and its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    at: Time,
    rank: u64,
    job: JobId,
}

impl Due {
    /// Returns whether this entry is due before the other one.
    fn is_before(self, other: Due) -> bool {
        // One comparison of 128 bits is several times as fast as that of a tuple.
        let (mine, theirs) = (self.order(), other.order());
        mine < theirs || mine == theirs && self.job < other.job
    }

    fn order(self) -> i128 {
        i128::from(self.at.ticks()) << 64 | i128::from(self.rank)
    }
}

/// The heap position of a job without an entry.
const ABSENT: u32 = u32::MAX;

/// A binary heap of one entry per job that records the position of each job's entry.
///
/// Push, pop, and cancel are O(log n). Entries of one instant are returned by their ranks.
#[derive(Clone, Debug, Default)]
pub struct EventQueue {
    heap: Vec<Due>,
    /// The heap position of each job's entry, by job index.
    place: Vec<u32>,
}

impl EventQueue {
    /// Returns an empty queue.
    pub const fn new() -> EventQueue {
        EventQueue { heap: Vec::new(), place: Vec::new() }
    }

    /// Returns the time of the next entry.
    pub fn next_time(&self) -> Option<Time> {
        self.heap.first().map(|first| first.at)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Returns whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Adds an entry for a job, or moves its entry if it has one.
    pub fn push(&mut self, job: JobId, at: Time, rank: u64) {
        self.cancel(job);
        if self.place.len() <= job.index() {
            self.place.resize(job.index() + 1, ABSENT);
        }
        self.heap.push(Due { at, rank, job });
        self.rise(self.heap.len() - 1);
    }

    /// Removes and returns the first entry.
    pub fn pop(&mut self) -> Option<(Time, u64, JobId)> {
        let first = *self.heap.first()?;
        self.place[first.job.index()] = ABSENT;
        self.heap.swap_remove(0);
        if !self.heap.is_empty() {
            self.sink(0);
        }
        Some((first.at, first.rank, first.job))
    }

    /// Removes a job's entry. Returns whether it had one.
    pub fn cancel(&mut self, job: JobId) -> bool {
        let Some(&place) = self.place.get(job.index()).filter(|&&place| place != ABSENT) else {
            return false;
        };
        let place = place as usize;
        self.place[job.index()] = ABSENT;
        self.heap.swap_remove(place);
        if place < self.heap.len() {
            self.rise(place);
            self.sink(self.place[self.heap[place].job.index()] as usize);
        }
        true
    }

    /// Moves the entry at `place` towards the front until its parent is due before it.
    fn rise(&mut self, mut place: usize) {
        let moved = self.heap[place];
        while place > 0 {
            let parent = self.heap[(place - 1) / 2];
            if !moved.is_before(parent) {
                break;
            }
            self.put(place, parent);
            place = (place - 1) / 2;
        }
        self.put(place, moved);
    }

    /// Moves the entry at `place` towards the back until its children are due after it.
    fn sink(&mut self, mut place: usize) {
        let moved = self.heap[place];
        while let Some(&left) = self.heap.get(2 * place + 1) {
            let right = self.heap.get(2 * place + 2).copied().filter(|right| right.is_before(left));
            let (child, first) = right.map_or((2 * place + 1, left), |right| (2 * place + 2, right));
            if !first.is_before(moved) {
                break;
            }
            self.put(place, first);
            place = child;
        }
        self.put(place, moved);
    }

    /// Puts an entry at a position of the heap.
    fn put(&mut self, place: usize, due: Due) {
        self.heap[place] = due;
        // There are at most as many entries as job indexes, which are u32.
        self.place[due.job.index()] = u32::try_from(place).unwrap_or(ABSENT);
    }
}
