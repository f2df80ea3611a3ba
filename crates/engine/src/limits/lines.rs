//! The deferred jobs that wait for nothing but an instant or a place.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use miserly_core::Time;

use super::places::{Distribution, PlaceRequest};

/// Deferred jobs in lines: the jobs of a line request the same for a place.
///
/// If the first job of a line finds no place, the others find none either. So a distribution of places costs O(log n) for
/// each place and each line, however many jobs wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    ready: BTreeMap<Arc<PlaceRequest>, BTreeSet<i64>>,
    /// The jobs with an earliest start that has not passed.
    timed: BTreeSet<(Time, i64)>,
    jobs: BTreeMap<i64, (Time, Arc<PlaceRequest>)>,
}

impl Lines {
    /// Adds a job with its earliest start; the beginning of time if it has none.
    pub(crate) fn add(&mut self, number: i64, begin: Time, request: PlaceRequest) {
        self.remove(number);
        let request = match self.ready.get_key_value(&request) {
            Some((known, _)) => Arc::clone(known),
            None => Arc::new(request),
        };
        if begin == Time::from_ticks(i64::MIN) {
            self.ready.entry(Arc::clone(&request)).or_default().insert(number);
        } else {
            self.timed.insert((begin, number));
        }
        self.jobs.insert(number, (begin, request));
    }

    /// Removes a job.
    pub(crate) fn remove(&mut self, number: i64) {
        let Some((begin, request)) = self.jobs.remove(&number) else { return };
        if self.timed.remove(&(begin, number)) {
            return;
        }
        if let Some(line) = self.ready.get_mut(&request) {
            line.remove(&number);
            if line.is_empty() {
                self.ready.remove(&request);
            }
        }
    }

    /// Moves the jobs whose earliest start has come to their lines.
    pub(crate) fn advance(&mut self, at: Time) {
        while let Some((_, number)) = self.timed.first().copied().filter(|(begin, _)| *begin <= at) {
            self.timed.pop_first();
            let Some((_, request)) = self.jobs.get(&number) else { continue };
            self.ready.entry(Arc::clone(request)).or_default().insert(number);
        }
    }

    /// Returns the earliest start that comes next.
    pub(crate) fn next_begin(&self) -> Option<Time> {
        self.timed.first().map(|(begin, _)| *begin)
    }

    /// Distributes places to the jobs with numbers below `end`, by number. Returns the first `most` of those that get one.
    pub(crate) fn distribute(&self, places: &mut Distribution, end: i64, most: usize) -> Vec<i64> {
        let first = |(request, line): (&'_ Arc<PlaceRequest>, &'_ BTreeSet<i64>)| {
            Some((*line.first()?, Arc::clone(request)))
        };
        let mut heads: BTreeMap<i64, Arc<PlaceRequest>> = self.ready.iter().filter_map(first).collect();
        let mut admitted = vec![];
        while admitted.len() < most
            && let Some((number, request)) = heads.pop_first().filter(|(number, _)| *number < end)
        {
            if !places.admit(&request) {
                continue;
            }
            admitted.push(number);
            let behind =
                self.ready.get(&request).and_then(|line| line.range((Excluded(number), Unbounded)).next());
            heads.extend(behind.map(|next| (*next, request)));
        }
        admitted
    }
}
