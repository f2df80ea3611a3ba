//! The measures of the jobs of a run, group by group.

mod grouping;

mod quality;

use std::collections::BTreeMap;

pub use grouping::{GroupKey, Grouping, GroupingError};
pub use quality::Quality;

use super::distribution::TICKS_PER_SECOND;
use super::measures::Measures;
use super::percentiles::EXACT_MOST;
use crate::finished::Finished;

/// The groups of one grouping, and what was measured of each.
///
/// Percentiles are exact up to [`EXACT_MOST`] jobs in all groups together; beyond that every group holds a sketch. A
/// grouping therefore holds no more values than the whole does, and is as exact; what its sketches need grows with the
/// number of groups, not with that of the jobs.
#[derive(Clone, Debug)]
pub struct Groups {
    by: Grouping,
    each: BTreeMap<GroupKey, Group>,
    jobs: u64,
    /// How many jobs there may be before all percentiles are sketches.
    exact_most: u64,
}

/// What was measured of a group.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The measures of its jobs.
    pub measures: Measures,
    work: u128,
}

impl Groups {
    /// No jobs yet.
    pub fn new(by: Grouping) -> Groups {
        Groups::within(by, EXACT_MOST as u64)
    }

    fn within(by: Grouping, exact_most: u64) -> Groups {
        let each = by.fixed().into_iter().map(|key| (key, Group::default())).collect();
        Groups { by, each, jobs: 0, exact_most }
    }

    /// By what the jobs are told apart.
    pub fn by(&self) -> Grouping {
        self.by
    }

    /// The groups, in their natural order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (GroupKey, &mut Group)> {
        self.each.iter_mut().map(|(key, group)| (*key, group))
    }

    /// Adds a job to its group.
    pub(super) fn add(&mut self, job: &Finished) {
        self.jobs += 1;
        let exact = self.is_exact();
        let group = self.each.entry(self.by.key(job)).or_default();
        if !exact {
            // A group that is met for the first time beyond the limit must not begin to hold values.
            group.measures.sketch();
        }
        group.add(job);
        if self.jobs == self.exact_most + 1 {
            self.sketch();
        }
    }

    /// Adds all that another one holds, of the same grouping.
    pub(super) fn merge(&mut self, other: &Groups) {
        self.jobs += other.jobs;
        for (key, theirs) in &other.each {
            self.each.entry(*key).or_default().merge(theirs);
        }
        if !self.is_exact() {
            self.sketch();
        }
    }

    fn is_exact(&self) -> bool {
        self.jobs <= self.exact_most
    }

    fn sketch(&mut self) {
        self.each.values_mut().for_each(|group| group.measures.sketch());
    }
}

impl Group {
    /// How many jobs it has.
    pub fn jobs(&self) -> u64 {
        self.measures.wait.count()
    }

    /// Their runtimes times their processors, in processor-seconds.
    pub fn work(&self) -> f64 {
        self.work as f64 / TICKS_PER_SECOND
    }

    fn add(&mut self, job: &Finished) {
        self.measures.add(job);
        let run = job.runtime.ticks().unsigned_abs();
        self.work += u128::from(run) * u128::from(job.request.procs());
    }

    fn merge(&mut self, other: &Group) {
        self.measures.merge(&other.measures);
        self.work += other.work;
    }
}

#[cfg(test)]
mod tests;
