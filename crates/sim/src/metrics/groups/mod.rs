//! The measures of the jobs of a run, group by group.

mod grouping;

mod own;

mod quality;

mod suited;

use std::collections::BTreeMap;

pub use grouping::{GroupKey, Grouping, GroupingError};
pub use own::{MOST_BOUNDS, OwnGroup, OwnRanges};
pub use quality::Quality;
pub use suited::SuitedRanges;

use super::batches::Batches;
use super::distribution::TICKS_PER_SECOND;
use super::measures::Measures;
use super::percentiles::EXACT_MOST;
use crate::finished::Finished;

/// The groups of one grouping, with the measures of each.
///
/// Percentiles are exact up to [`EXACT_MOST`] jobs in all groups together. Beyond that every group
/// holds a sketch. So a grouping never holds more values than the measures of the whole run, and is
/// as exact. Its sketches grow with the number of groups, not with that of the jobs.
#[derive(Clone, Debug)]
pub struct Groups {
    by: Grouping,
    each: BTreeMap<GroupKey, Group>,
    jobs: u64,
    /// The largest number of jobs with exact percentiles.
    exact_most: u64,
}

/// The measures of a group.
#[derive(Clone, Debug)]
pub struct Group {
    /// The measures of its jobs.
    pub measures: Measures,
    /// The sums of its waits over the batches of the run.
    pub waits: Batches<1>,
    work: u128,
}

impl Default for Group {
    fn default() -> Group {
        Group { measures: Measures::default(), waits: Batches::new([TICKS_PER_SECOND]), work: 0 }
    }
}

impl Groups {
    /// Returns the groups without jobs.
    pub fn new(by: Grouping) -> Groups {
        Groups::within(by, EXACT_MOST as u64)
    }

    fn within(by: Grouping, exact_most: u64) -> Groups {
        let each = by.fixed().into_iter().map(|key| (key, Group::default())).collect();
        Groups { by, each, jobs: 0, exact_most }
    }

    /// Returns the grouping.
    pub fn grouping(&self) -> Grouping {
        self.by
    }

    /// Returns the groups, in their natural order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&GroupKey, &mut Group)> {
        self.each.iter_mut()
    }

    /// Adds the job at a position in the order of the batches to its group.
    pub(super) fn add(&mut self, job: &Finished, place: u64) {
        self.jobs += 1;
        let exact = self.is_exact();
        let group = self.each.entry(self.by.key(job)).or_default();
        if !exact {
            // A group that first occurs beyond the limit must not store values.
            group.measures.sketch();
        }
        group.add(job, place);
        if self.jobs == self.exact_most + 1 {
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
    /// Returns the number of its jobs.
    pub fn jobs(&self) -> u64 {
        self.measures.wait.count()
    }

    /// Returns their runtimes times their processors, in processor-seconds.
    pub fn work(&self) -> f64 {
        self.work as f64 / TICKS_PER_SECOND
    }

    fn add(&mut self, job: &Finished, place: u64) {
        let amounts = self.measures.add(job);
        self.waits.add(place, &[amounts[Measures::WAIT]]);
        let run = job.runtime.ticks().unsigned_abs();
        self.work += u128::from(run) * u128::from(job.request.procs());
    }
}

#[cfg(test)]
mod tests;
