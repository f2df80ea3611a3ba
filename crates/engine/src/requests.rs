//! The request handler: dispatches requests and serves those that change no job.

use miserly_api::model::{Filter, JobIds, JobView, Problem, ProblemCode};

use crate::{
    Caller, DaemonReply, DaemonRequest, EndedFilter, Engine, EngineError, Journal, JournalError, Launcher,
    Now, Record, Requester, startup,
};

/// The default number of finished jobs in a list.
const ENDED_DEFAULT: u32 = 1000;

/// The maximum number of finished jobs in a list. The engine is busy while it reads them.
const ENDED_LIMIT: u32 = 10_000;

/// The outcome of a request.
pub(crate) type Handled = Result<DaemonReply, RequestError>;

/// The reason why a request has no effect.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// It is refused. The engine continues.
    #[error(transparent)]
    Refused(#[from] Problem),
    /// The engine cannot continue.
    #[error(transparent)]
    Fatal(#[from] EngineError),
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Handles a request. The reply is dispatched when the batch is durable.
    pub(crate) fn handle_request(
        &mut self,
        now: Now,
        caller: Caller,
        request: DaemonRequest,
        requester: Box<dyn Requester>,
    ) -> Result<(), EngineError> {
        match request {
            DaemonRequest::Wait(job) if self.is_unfinished_on_disk(job) => self.waiters.add(job, requester),
            request if request.is_read() => self.reads.push((requester, request)),
            request => {
                let reply = match self.reply(now, caller, request) {
                    Ok(reply) => Ok(reply),
                    Err(RequestError::Refused(problem)) => Err(problem),
                    Err(RequestError::Fatal(error)) => {
                        let problem = Problem::new(ProblemCode::Internal, error.to_string());
                        self.batch.reply(requester, Err(problem));
                        return Err(error);
                    }
                };
                self.batch.reply(requester, reply);
            }
        }
        Ok(())
    }

    /// Replies to the requests that change nothing, from the durable state.
    pub(crate) fn answer_reads(&mut self, now: Now) {
        for (requester, request) in std::mem::take(&mut self.reads) {
            requester.reply(self.answer(now, request));
        }
    }

    fn answer(&self, now: Now, request: DaemonRequest) -> Result<DaemonReply, Problem> {
        match request {
            DaemonRequest::Jobs(filter) => self.list_jobs(now, &filter),
            DaemonRequest::Job(job) | DaemonRequest::Wait(job) => self.show_job(now, job),
            DaemonRequest::Pools => Ok(DaemonReply::Pools(self.pools(now))),
            _ => Ok(DaemonReply::Status(Box::new(self.status(now)))),
        }
    }

    /// Returns whether a job is unfinished in the durable state. A job that finished in this batch is.
    fn is_unfinished_on_disk(&self, job: i64) -> bool {
        self.jobs.contains(job) || self.batch.has_finished(job)
    }

    fn reply(&mut self, now: Now, caller: Caller, request: DaemonRequest) -> Handled {
        match request {
            DaemonRequest::Submit(submission) => self.submit(now, caller, &submission),
            DaemonRequest::Quote(submission) => self.quote(now, caller, &submission),
            DaemonRequest::Cancel { job, array } => self.cancel(now, caller, job, array),
            DaemonRequest::Hold { job, move_promises } => self.hold(now, caller, job, move_promises),
            DaemonRequest::Release(job) => self.release(now, caller, job),
            DaemonRequest::Requeue { job, move_promises } => self.requeue(now, caller, job, move_promises),
            DaemonRequest::Extend { job, by } => self.extend(now, caller, job, by),
            DaemonRequest::Drain(on) => Ok(self.drain(caller, on)?),
            read => Ok(self.answer(now, read)?),
        }
    }

    /// Returns an unfinished job that the caller may change.
    pub(crate) fn owned_job(&self, caller: Caller, job: i64) -> Result<&Record, Problem> {
        let Some(record) = self.jobs.get(job) else {
            let over = self.journal.job(job).ok().flatten().is_some();
            return Err(if over {
                Problem::new(ProblemCode::Conflict, format!("job {job} is over"))
            } else {
                no_job(job)
            });
        };
        if caller.uid != 0 && caller.uid != record.uid && caller.uid != self.info.owner {
            return Err(Problem::new(ProblemCode::Forbidden, format!("job {job} is another user's")));
        }
        Ok(record)
    }

    fn show_job(&self, now: Now, job: i64) -> Result<DaemonReply, Problem> {
        if let Some(record) = self.jobs.get(job) {
            return Ok(DaemonReply::Job(Box::new(self.view(now, record))));
        }
        let row = self.journal.job(job).map_err(unreadable)?.ok_or_else(|| no_job(job))?;
        Ok(DaemonReply::Job(Box::new(self.view(now, &startup::record(&row)?))))
    }

    fn list_jobs(&self, now: Now, filter: &Filter) -> Result<DaemonReply, Problem> {
        let mut views = if filter.all { self.ended_views(now, filter)? } else { vec![] };
        let admitted = self.jobs.records().filter(|record| admits(filter, record));
        views.extend(admitted.map(|record| self.view(now, record)));
        if views.is_empty() {
            self.check_filter(filter)?;
        }
        Ok(DaemonReply::Jobs(views))
    }

    fn ended_views(&self, now: Now, filter: &Filter) -> Result<Vec<JobView>, Problem> {
        let ended = EndedFilter {
            uid: filter.uid,
            queue: filter.queue.clone(),
            array: filter.array,
            limit: Some(filter.limit.unwrap_or(ENDED_DEFAULT).min(ENDED_LIMIT)),
        };
        let rows = self.journal.ended_jobs(&ended).map_err(unreadable)?;
        rows.iter().map(|row| Ok(self.view(now, &startup::record(row)?))).collect()
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

    fn drain(&mut self, caller: Caller, on: bool) -> Result<DaemonReply, Problem> {
        if caller.uid != 0 && caller.uid != self.info.owner {
            let message = "only the daemon's user or root can drain the daemon";
            return Err(Problem::new(ProblemCode::Forbidden, message));
        }
        self.values.draining = on;
        self.batch.touch_values();
        Ok(DaemonReply::JobIds(JobIds { jobs: vec![] }))
    }
}

fn admits(filter: &Filter, record: &Record) -> bool {
    let array = || record.array.map_or(record.number, |array| array.first);
    filter.uid.is_none_or(|uid| record.uid == uid)
        && filter.queue.as_ref().is_none_or(|queue| record.queue == *queue)
        && filter.array.is_none_or(|wanted| array() == wanted)
}

pub(crate) fn no_job(job: i64) -> Problem {
    Problem::new(ProblemCode::NotFound, format!("there is no job {job}; `miserly queue --all` lists them"))
}

#[allow(clippy::needless_pass_by_value, reason = "the signature that map_err needs")]
fn unreadable(error: JournalError) -> Problem {
    Problem::new(ProblemCode::Storage, error.to_string())
}
