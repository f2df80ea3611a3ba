//! The requests that are measured.

use miserly_api::model::Filter;
use miserly_engine::{DaemonReply, DaemonRequest};

use crate::bench::{Bench, Failure};

impl Bench {
    pub(crate) fn quote(&mut self) -> Result<(), Failure> {
        self.ask(DaemonRequest::Quote(self.submission())).map(drop)
    }

    pub(crate) fn cancel(&mut self, job: i64) -> Result<(), Failure> {
        self.ask(DaemonRequest::Cancel { job, array: false }).map(drop)
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
