//! The requests that are measured.

use miserly_api::model::{ChangeRequest, Filter, JobChange, JobRef, Selection};
use miserly_engine::{DaemonReply, DaemonRequest};

use crate::bench::{Bench, Failure};

impl Bench {
    pub(crate) fn quote(&mut self) -> Result<(), Failure> {
        self.ask(DaemonRequest::Quote(self.submission())).map(drop)
    }

    pub(crate) fn cancel(&mut self, job: i64) -> Result<(), Failure> {
        self.ask(DaemonRequest::Cancel { job, array: false }).map(drop)
    }

    /// Cancels all jobs with numbers in a range by one request. Returns their number.
    pub(crate) fn cancel_range(&mut self, first: i64, last: i64) -> Result<usize, Failure> {
        let select = Selection::from_jobs(vec![JobRef::Range(first, last)]);
        let request = ChangeRequest { change: JobChange::Cancel, select, move_promises: false };
        match self.ask(DaemonRequest::Change(Box::new(request)))? {
            DaemonReply::Changed(changed) => Ok(changed.jobs.len()),
            other => Err(format!("{other:?}").into()),
        }
    }

    /// Lists all jobs, in pages. Returns their number.
    pub(crate) fn list_all(&mut self) -> Result<usize, Failure> {
        let (mut listed, mut after) = (0, 0);
        loop {
            let filter = Filter { after: Some(after), ..Filter::default() };
            let DaemonReply::Jobs(jobs) = self.ask(DaemonRequest::Jobs(filter))? else { return Ok(listed) };
            let Some(last) = jobs.last() else { return Ok(listed) };
            (listed, after) = (listed + jobs.len(), last.number);
        }
    }
}
