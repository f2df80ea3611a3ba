//! Lists of jobs, in pages: the work for one reply is bounded.

use miserly_api::model::{Filter, JobView, Problem, listing};

use crate::request::problems::{no_job, unreadable};
use crate::{Caller, DaemonReply, EndedFilter, EndedJobs, JobRow, Now, Record, Snapshot};

impl Snapshot {
    /// Returns jobs by number.
    ///
    /// With `after`, these are the next ones after that number. Without it, the unfinished ones come first, and the most recent
    /// finished ones fill the list.
    pub(crate) fn list_jobs(
        &self,
        now: Now,
        caller: &Caller,
        filter: &Filter,
        ended: &impl EndedJobs,
    ) -> Result<DaemonReply, Problem> {
        let limit = filter.limit.unwrap_or(listing::PAGE).min(listing::MOST) as usize;
        let from = filter.after.map_or(0, |after| after.saturating_add(1));
        let admitted = self.jobs.from(from).filter(|record| admits(filter, record));
        let view = |record: &Record| self.listed(now, caller, filter, record);
        let mut views: Vec<JobView> = admitted.take(limit).map(view).collect();
        let unrecorded = self.unrecorded_views(now, caller, filter).into_iter();
        views.extend(unrecorded.map(|view| without_details(filter, view)));
        views.sort_unstable_by_key(|view| view.number);
        views.truncate(limit);
        if filter.all {
            let left = if filter.limit.is_some() { limit - views.len() } else { limit };
            let rows = match filter.after {
                Some(_) => ended_page(ended, from, limit, filter)?,
                None => latest_ended(ended, left, filter)?,
            };
            // A job that finished after this snapshot is in it.
            let rows = rows.iter().filter(|row| !self.is_unfinished(row.number));
            views.extend(rows.map(|row| without_details(filter, self.stored_view(now, caller, row))));
        }
        views.sort_unstable_by_key(|view| view.number);
        if filter.after.is_some() {
            views.truncate(limit);
        }
        if views.is_empty() {
            self.check_filter(filter, ended)?;
        }
        Ok(DaemonReply::Jobs(views))
    }

    /// Returns a job, finished or not.
    pub(crate) fn show_job(
        &self,
        now: Now,
        caller: &Caller,
        job: i64,
        ended: &impl EndedJobs,
    ) -> Result<DaemonReply, Problem> {
        if let Some(record) = self.jobs.get(job) {
            return Ok(DaemonReply::Job(Box::new(self.view_for(now, caller, record))));
        }
        if let Some(view) = self.unrecorded_view(now, caller, job) {
            return Ok(DaemonReply::Job(Box::new(view)));
        }
        let row = ended.job(job).map_err(unreadable)?.ok_or_else(|| no_job(job))?;
        Ok(DaemonReply::Job(Box::new(self.stored_view(now, caller, &row))))
    }

    /// Returns a job as it is stored.
    fn stored_view(&self, now: Now, caller: &Caller, row: &JobRow) -> JobView {
        match Record::read(row) {
            Ok(record) => self.view_for(now, caller, &record),
            Err(problem) => self.unreadable_view(now, &row.clone().unreadable(problem), None),
        }
    }

    /// Returns a job of a list. It has its command and its paths on request, if the caller may read them.
    pub(crate) fn listed(&self, now: Now, caller: &Caller, filter: &Filter, record: &Record) -> JobView {
        without_details(filter, self.view_for(now, caller, record))
    }

    /// Returns the jobs without a usable record, without details.
    pub(crate) fn unrecorded_listed(&self, now: Now, caller: &Caller) -> Vec<JobView> {
        let filter = Filter::default();
        let views = self.unrecorded_views(now, caller, &filter).into_iter();
        views.map(|view| without_details(&filter, view)).collect()
    }

    /// Returns a job as it is stored, without details.
    pub(crate) fn listed_row(&self, now: Now, caller: &Caller, row: &JobRow) -> JobView {
        without_details(&Filter::default(), self.stored_view(now, caller, row))
    }

    /// Checks that the queue and the array of a filter exist. Both may be empty.
    fn check_filter(&self, filter: &Filter, ended: &impl EndedJobs) -> Result<(), Problem> {
        if let Some(name) = &filter.queue {
            self.queue_called(name)?;
        }
        let Some(array) = filter.array.filter(|array| !self.is_unfinished(*array)) else {
            return Ok(());
        };
        let row = ended.job(array).map_err(unreadable)?;
        row.map_or(Err(no_job(array)), |_| Ok(()))
    }
}

/// Removes the command, the paths, the usage and the steps of a job, unless they were requested.
fn without_details(filter: &Filter, mut view: JobView) -> JobView {
    if !filter.details {
        (view.command, view.directory, view.output, view.error) = (None, None, None, None);
        view.usage = None;
        view.steps = vec![];
    }
    view
}

/// Returns the finished jobs with the highest numbers.
fn latest_ended(ended: &impl EndedJobs, limit: usize, filter: &Filter) -> Result<Vec<JobRow>, Problem> {
    let wanted = EndedFilter {
        uid: filter.uid,
        queue: filter.queue.clone(),
        array: filter.array,
        limit: Some(u32::try_from(limit).unwrap_or(u32::MAX)),
    };
    ended.ended_jobs(&wanted).map_err(unreadable)
}

/// Returns the finished jobs with the lowest numbers from `from` on.
fn ended_page(
    ended: &impl EndedJobs,
    mut from: i64,
    limit: usize,
    filter: &Filter,
) -> Result<Vec<JobRow>, Problem> {
    let mut page = vec![];
    while page.len() < limit {
        let rows = ended.ended_from(from, listing::PAGE).map_err(unreadable)?;
        let Some(last) = rows.last() else { break };
        from = last.number.saturating_add(1);
        page.extend(rows.into_iter().filter(|row| admits_row(filter, row)));
    }
    page.truncate(limit);
    Ok(page)
}

fn admits(filter: &Filter, record: &Record) -> bool {
    let array = || record.array.map_or(record.number, |array| array.first);
    filter.uid.is_none_or(|uid| record.uid == uid)
        && filter.queue.as_ref().is_none_or(|queue| *record.queue == **queue)
        && filter.array.is_none_or(|wanted| array() == wanted)
}

fn admits_row(filter: &Filter, row: &JobRow) -> bool {
    filter.uid.is_none_or(|uid| row.uid == uid)
        && filter.queue.as_ref().is_none_or(|queue| row.queue == *queue)
        && filter.array.is_none_or(|wanted| row.array.unwrap_or(row.number) == wanted)
}
