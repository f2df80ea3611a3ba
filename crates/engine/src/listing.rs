//! Lists of jobs, in pages: the work for one reply is bounded.

use miserly_api::model::{Filter, JobView, Problem, listing};

use crate::requests::{no_job, unreadable};
use crate::{Caller, DaemonReply, EndedFilter, Engine, JobRow, Journal, Launcher, Now, Record, startup};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Returns jobs by number.
    ///
    /// With `after`, these are the next ones after that number. Without it, the unfinished ones come first, and the most recent
    /// finished ones fill the list.
    pub(crate) fn list_jobs(
        &self,
        now: Now,
        caller: &Caller,
        filter: &Filter,
    ) -> Result<DaemonReply, Problem> {
        let limit = filter.limit.unwrap_or(listing::PAGE).min(listing::MOST) as usize;
        let from = filter.after.map_or(0, |after| after.saturating_add(1));
        let admitted = self.jobs.records().filter(|record| record.number >= from && admits(filter, record));
        let view = |record: &Record| self.listed(now, caller, filter, record);
        let mut views: Vec<JobView> = admitted.take(limit).map(view).collect();
        if filter.all {
            let left = if filter.limit.is_some() { limit - views.len() } else { limit };
            let rows = match filter.after {
                Some(_) => self.ended_page(from, limit, filter)?,
                None => self.latest_ended(left, filter)?,
            };
            for row in &rows {
                views.push(view(&startup::record(row)?));
            }
        }
        views.sort_unstable_by_key(|view| view.number);
        if filter.after.is_some() {
            views.truncate(limit);
        }
        if views.is_empty() {
            self.check_filter(filter)?;
        }
        Ok(DaemonReply::Jobs(views))
    }

    /// Returns a job of a list. It has its command and its paths on request, if the caller may read them.
    fn listed(&self, now: Now, caller: &Caller, filter: &Filter, record: &Record) -> JobView {
        let mut view = self.view_for(now, caller.uid, record);
        if !filter.details {
            (view.command, view.directory, view.output, view.error) = (None, None, None, None);
        }
        view
    }

    /// Returns the finished jobs with the highest numbers.
    fn latest_ended(&self, limit: usize, filter: &Filter) -> Result<Vec<JobRow>, Problem> {
        let ended = EndedFilter {
            uid: filter.uid,
            queue: filter.queue.clone(),
            array: filter.array,
            limit: Some(u32::try_from(limit).unwrap_or(u32::MAX)),
        };
        self.journal.ended_jobs(&ended).map_err(unreadable)
    }

    /// Returns the finished jobs with the lowest numbers from `from` on.
    fn ended_page(&self, mut from: i64, limit: usize, filter: &Filter) -> Result<Vec<JobRow>, Problem> {
        let mut page = vec![];
        while page.len() < limit {
            let rows = self.journal.ended_from(from, listing::PAGE).map_err(unreadable)?;
            let Some(last) = rows.last() else { break };
            from = last.number.saturating_add(1);
            page.extend(rows.into_iter().filter(|row| admits_row(filter, row)));
        }
        page.truncate(limit);
        Ok(page)
    }

    /// Checks that the queue and the array of a filter exist. Both may be empty.
    fn check_filter(&self, filter: &Filter) -> Result<(), Problem> {
        if let Some(name) = &filter.queue {
            self.queue_called(name)?;
        }
        let Some(array) = filter.array.filter(|array| !self.is_unfinished_on_disk(*array)) else {
            return Ok(());
        };
        let row = self.journal.job(array).map_err(unreadable)?;
        row.map_or(Err(no_job(array)), |_| Ok(()))
    }
}

fn admits(filter: &Filter, record: &Record) -> bool {
    let array = || record.array.map_or(record.number, |array| array.first);
    filter.uid.is_none_or(|uid| record.uid == uid)
        && filter.queue.as_ref().is_none_or(|queue| record.queue == *queue)
        && filter.array.is_none_or(|wanted| array() == wanted)
}

fn admits_row(filter: &Filter, row: &JobRow) -> bool {
    filter.uid.is_none_or(|uid| row.uid == uid)
        && filter.queue.as_ref().is_none_or(|queue| row.queue == *queue)
        && filter.array.is_none_or(|wanted| row.array.unwrap_or(row.number) == wanted)
}
