//! Which waiting job is to start when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use miserly_core::{JobId, Time};

use crate::shared::{Key, Waiting};

/// The reserved starts of the jobs in the queue.
#[derive(Debug, Default)]
pub(super) struct Starts {
    /// By the job's handle; `None` for a job that is not in the queue.
    of: Vec<Option<(Time, Key)>>,
    /// How many jobs have one.
    jobs: usize,
    /// The earliest first. An entry that is not what `of` says is a former one; it is dropped when it comes
    /// to the front, or when there are too many of its kind.
    heap: BinaryHeap<Reverse<(Time, JobId)>>,
}

impl Starts {
    /// Reserves a start for a job, in place of the one it had.
    pub(super) fn set(&mut self, held: &Waiting, at: Time) {
        if self.of.len() <= held.job.index() {
            self.of.resize(held.job.index() + 1, None);
        }
        let before = self.of[held.job.index()].replace((at, held.key));
        if before.is_some_and(|(before, _)| before == at) {
            return;
        }
        self.jobs += usize::from(before.is_none());
        self.heap.push(Reverse((at, held.job)));
        if self.heap.len() > 4 * self.jobs + 64 {
            self.forget_former();
        }
    }

    /// Makes the heap anew, of one entry per job. Former entries and doubles are as many as pushes since the last
    /// time, so this costs nothing on the average.
    fn forget_former(&mut self) {
        let entry = |(job, at): (u32, &Option<(Time, Key)>)| at.map(|(at, _)| Reverse((at, JobId(job))));
        self.heap = (0..).zip(&self.of).filter_map(entry).collect();
    }

    /// The job's reserved start. It has one if it is in the queue.
    pub(super) fn get(&self, job: JobId) -> Time {
        self.of[job.index()].map_or(Time::MAX, |(at, _)| at)
    }

    /// The job that is to start first.
    pub(super) fn first(&mut self) -> Option<(Time, JobId)> {
        while let Some(&Reverse((at, job))) = self.heap.peek() {
            if self.of[job.index()].is_some_and(|(reserved, _)| reserved == at) {
                return Some((at, job));
            }
            self.heap.pop();
        }
        None
    }

    /// Removes a job that starts; returns its place in the queue.
    pub(super) fn remove(&mut self, job: JobId) -> Option<Key> {
        let (_, key) = self.of[job.index()].take()?;
        self.jobs -= 1;
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{Entry, Request, Resources, Span};

    use super::*;

    #[test]
    fn former_entries_and_doubles_do_not_pile_up() {
        let waiting = |job: u32| {
            let request = Request::new(job.into(), Time::ZERO, Span::TICK, Resources::cpus(1));
            let entry = Entry::waiting(request, job.into());
            Waiting { key: Key::arrival(&entry), job: JobId(job), procs: 1, span: Span::TICK }
        };
        let jobs: Vec<Waiting> = (0..10).map(waiting).collect();
        let mut starts = Starts::default();
        for round in 0..1000 {
            for job in &jobs {
                // There and back again, and where it was.
                for at in [round % 2, round % 3, round % 3] {
                    starts.set(job, Time::from_ticks(at));
                }
            }
            assert!(starts.heap.len() <= 4 * jobs.len() + 64, "{} entries", starts.heap.len());
        }
        assert_eq!(starts.first().map(|(at, job)| (at.ticks(), job)), Some((0, JobId(0))));
    }
}
