//! The jobs that changed between two snapshots, as a user may see them.

use std::collections::BTreeSet;
use std::sync::Arc;

use miserly_api::model::{Filter, JobView};

use crate::{Caller, EndedJobs, JournalError, Now, Snapshot};

impl Snapshot {
    /// Returns all unfinished jobs without details, by number.
    pub fn unfinished_views(&self, now: Now, caller: &Caller) -> Vec<JobView> {
        let filter = Filter::default();
        let mut views: Vec<JobView> =
            self.jobs.iter().map(|record| self.listed(now, caller, &filter, record)).collect();
        views.extend(self.unrecorded_listed(now, caller));
        views.sort_unstable_by_key(|view| view.number);
        views
    }

    /// Returns the jobs that were added, changed or finished since an earlier snapshot, without details, by number.
    ///
    /// Changes of the queue around a job, which its reasons to wait mention, are not changes of the job.
    ///
    /// # Errors
    /// If the finished jobs cannot be read.
    pub fn changed_views(
        &self,
        before: &Snapshot,
        now: Now,
        caller: &Caller,
        ended: &impl EndedJobs,
    ) -> Result<Vec<JobView>, JournalError> {
        let changed = self.changed_numbers(before);
        let (here, gone): (Vec<i64>, Vec<i64>) =
            changed.into_iter().partition(|number| self.jobs.get(*number).is_some());
        let mut views: Vec<JobView> =
            here.into_iter().filter_map(|number| self.changed_view(before, now, caller, number)).collect();
        views.extend(self.changed_unrecorded(before, now, caller));
        for number in gone.into_iter().filter(|number| !self.is_unfinished(*number)) {
            let row = ended.job(number)?.filter(|row| row.ended);
            views.extend(row.map(|row| self.listed_row(now, caller, &row)));
        }
        views.sort_unstable_by_key(|view| view.number);
        Ok(views)
    }

    /// Returns the numbers of all jobs that may differ from an earlier snapshot. Jobs that came and went since are among them.
    fn changed_numbers(&self, before: &Snapshot) -> BTreeSet<i64> {
        let mut changed: BTreeSet<i64> = self.jobs.changed_since(&before.jobs).into_iter().collect();
        changed.extend(before.values.next_number..self.values.next_number);
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
