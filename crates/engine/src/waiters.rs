//! Requesters that wait for the end of a job.

use miserly_api::model::JobView;

use crate::{DaemonReply, Requester};

/// Requesters that wait for jobs to finish.
#[derive(Debug, Default)]
pub(crate) struct EndWaiters {
    waiting: Vec<(i64, Box<dyn Requester>)>,
}

impl EndWaiters {
    /// Adds a requester that waits for a job.
    pub(crate) fn add(&mut self, job: i64, requester: Box<dyn Requester>) {
        self.waiting.push((job, requester));
    }

    /// Replies to the requesters of finished jobs, and drops those that have gone. `finished` returns a finished job.
    pub(crate) fn notify(&mut self, finished: impl Fn(i64) -> Option<JobView>) {
        for (job, requester) in std::mem::take(&mut self.waiting) {
            match finished(job) {
                Some(view) => requester.reply(Ok(DaemonReply::Job(Box::new(view)))),
                None if requester.is_gone() => {}
                None => self.waiting.push((job, requester)),
            }
        }
    }
}
