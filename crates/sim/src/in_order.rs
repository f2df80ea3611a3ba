//! From the order of the ends to the order of the submissions.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use miserly_core::{JobNumber, Request, Time};

use crate::finished::{Finished, Observer};

/// Something that takes the finished jobs one by one, such as a writer of a file format.
pub trait Sink {
    /// Takes the next job.
    ///
    /// # Errors
    /// If it cannot be written.
    fn job(&mut self, job: &Finished) -> io::Result<()>;
}

/// Hands the jobs to a sink in the order of their submission.
///
/// Holds those that ended before one submitted ahead of them.
pub struct InOrder<S> {
    sink: S,
    /// The jobs that are not yet handed on, by submission: which, and what became of it, once it has ended.
    pending: VecDeque<Option<Finished>>,
    /// How many were handed on.
    done: u64,
    /// The rank of each job that has not ended, by its number; a number that is used twice has two.
    ranks: BTreeMap<JobNumber, VecDeque<(Time, u64)>>,
    submitted: u64,
}

impl<S: Sink> InOrder<S> {
    /// Hands jobs on to `sink`.
    pub const fn new(sink: S) -> InOrder<S> {
        InOrder { sink, pending: VecDeque::new(), done: 0, ranks: BTreeMap::new(), submitted: 0 }
    }

    /// The sink, once the run is over.
    pub fn into_inner(self) -> S {
        self.sink
    }

    /// The rank by submission of a job that ended.
    fn rank(&mut self, job: &Finished) -> Option<u64> {
        let number = job.request.number;
        let ranks = self.ranks.get_mut(&number)?;
        let place = ranks.iter().position(|(submit, _)| *submit == job.request.submit)?;
        let (_, rank) = ranks.remove(place)?;
        if ranks.is_empty() {
            self.ranks.remove(&number);
        }
        Some(rank)
    }
}

impl<S: Sink> Observer for InOrder<S> {
    fn submitted(&mut self, _now: Time, request: &Request) {
        self.ranks.entry(request.number).or_default().push_back((request.submit, self.submitted));
        self.submitted += 1;
        self.pending.push_back(None);
    }

    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        let slot = self.rank(job).and_then(|rank| usize::try_from(rank - self.done).ok());
        if let Some(slot) = slot.and_then(|slot| self.pending.get_mut(slot)) {
            *slot = Some(job.clone());
        }
        while let Some(Some(_)) = self.pending.front() {
            if let Some(Some(job)) = self.pending.pop_front() {
                self.sink.job(&job)?;
            }
            self.done += 1;
        }
        Ok(())
    }
}
