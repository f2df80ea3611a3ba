//! Requesters that wait for the end of a job.

use miserly_api::model::JobView;

use crate::{DaemonReply, Requester};

/// Requesters that wait for jobs to finish.
#[derive(Debug, Default)]
pub(crate) struct EndWaiters {
    waiting: Vec<(i64, u32, Box<dyn Requester>)>,
}

impl EndWaiters {
    /// Adds a requester of a user that waits for a job.
    pub(crate) fn add(&mut self, job: i64, uid: u32, requester: Box<dyn Requester>) {
        self.waiting.push((job, uid, requester));
    }

    /// Replies to the requesters of finished jobs, and drops those that have gone. `finished` returns a finished job for
    /// a user.
    pub(crate) fn notify(&mut self, finished: impl Fn(i64, u32) -> Option<JobView>) {
        for (job, uid, requester) in std::mem::take(&mut self.waiting) {
            match finished(job, uid) {
                Some(view) => requester.reply(Ok(DaemonReply::Job(Box::new(view)))),
                None if requester.is_gone() => {}
                None => self.waiting.push((job, uid, requester)),
            }
        }
    }
}
