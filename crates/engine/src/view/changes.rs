//! The jobs that changed between two snapshots, as a user may see them.

use std::collections::BTreeSet;
use std::sync::Arc;

use miserly_api::model::{Filter, JobView};

use crate::{Caller, EndedJobs, JobState, JournalError, Now, Record, Run, Snapshot};

/// The changes between two snapshots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobChanges {
    /// The jobs that were added, changed or finished, without details, by number.
    pub views: Vec<JobView>,
    /// The numbers of the jobs that finished and are forgotten already.
    pub gone: Vec<i64>,
}

impl JobChanges {
    /// Returns whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty() && self.gone.is_empty()
    }
}

impl Snapshot {
    /// Returns whether a job waits for its start, and does not run on idle resources.
    pub fn waits(&self, job: i64) -> bool {
        let waits = |record: &Record| {
            record.state == JobState::Queued && !record.run.as_ref().is_some_and(Run::counts)
        };
        self.jobs.get(job).is_some_and(waits)
    }

    /// Returns those of some jobs that have a record, without details, by number.
    pub fn views_of(&self, jobs: impl IntoIterator<Item = i64>, now: Now, caller: &Caller) -> Vec<JobView> {
        let filter = Filter::default();
        let records = jobs.into_iter().filter_map(|job| self.jobs.get(job));
        let mut views: Vec<JobView> =
            records.map(|record| self.listed(now, caller, &filter, record)).collect();
        views.sort_unstable_by_key(|view| view.number);
        views
    }

    /// Returns all unfinished jobs without details, by number.
    pub fn unfinished_views(&self, now: Now, caller: &Caller) -> Vec<JobView> {
        let filter = Filter::default();
        let mut views: Vec<JobView> =
            self.jobs.iter().map(|record| self.listed(now, caller, &filter, record)).collect();
        views.extend(self.unrecorded_listed(now, caller));
        views.sort_unstable_by_key(|view| view.number);
        views
    }

    /// Returns the jobs that were added, changed or finished since an earlier snapshot.
    ///
    /// Changes of the queue around a job, which its reasons to wait mention, are not changes of the job.
    ///
    /// # Errors
    /// If the finished jobs cannot be read.
    pub fn job_changes(
        &self,
        before: &Snapshot,
        now: Now,
        caller: &Caller,
        ended: &impl EndedJobs,
    ) -> Result<JobChanges, JournalError> {
        let changed = self.changed_numbers(before);
        let (here, over): (Vec<i64>, Vec<i64>) =
            changed.into_iter().partition(|number| self.jobs.get(*number).is_some());
        let mut views: Vec<JobView> =
            here.into_iter().filter_map(|number| self.changed_view(before, now, caller, number)).collect();
        views.extend(self.changed_unrecorded(before, now, caller));
        let mut gone = vec![];
        for number in over.into_iter().filter(|number| !self.is_unfinished(*number)) {
            match ended.job(number)? {
                Some(row) if row.ended => views.push(self.listed_row(now, caller, &row)),
                None if before.is_unfinished(number) => gone.push(number),
                _ => {}
            }
        }
        views.sort_unstable_by_key(|view| view.number);
        Ok(JobChanges { views, gone })
    }

    /// Returns the numbers of all jobs that may differ from an earlier snapshot. Jobs that came and went since are among them.
    fn changed_numbers(&self, before: &Snapshot) -> BTreeSet<i64> {
        let mut changed: BTreeSet<i64> = self.jobs.changed_since(&before.jobs).into_iter().collect();
        changed.extend(before.values.next_number()..self.values.next_number());
        if !Arc::ptr_eq(&self.unrecorded, &before.unrecorded) {
            changed.extend(before.unrecorded.numbers());
        }
        // The setup is part of what a job shows.
        if !Arc::ptr_eq(&self.setup, &before.setup) {
            changed.extend(self.jobs.iter().map(|record| record.number));
        }
        changed
    }

    /// Returns a job with a record, unless it looks as before.
    fn changed_view(&self, before: &Snapshot, now: Now, caller: &Caller, number: i64) -> Option<JobView> {
        let filter = Filter::default();
        let view = |of: &Snapshot| Some(of.listed(now, caller, &filter, of.jobs.get(number)?));
        view(self).filter(|after| view(before).as_ref() != Some(after))
    }

    /// Returns the jobs without a usable record that do not look as before.
    fn changed_unrecorded(&self, before: &Snapshot, now: Now, caller: &Caller) -> Vec<JobView> {
        if Arc::ptr_eq(&self.unrecorded, &before.unrecorded) {
            return vec![];
        }
        let old = before.unrecorded_listed(now, caller);
        self.unrecorded_listed(now, caller).into_iter().filter(|view| !old.contains(view)).collect()
    }
}
