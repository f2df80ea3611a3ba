//! The request handler: dispatches requests and serves those that change no job.

use miserly_api::model::{JobChange, JobIds, Problem, ProblemCode, Selection, listing};
use miserly_marks::{mark, mark_variant};

use crate::request::problems::no_job;
use crate::{
    Caller, DaemonReply, DaemonRequest, Engine, EngineError, Journal, Launcher, Now, Record, Requester,
};

/// The number of listed jobs after which a batch answers no further reads.
const READ_JOBS: usize = listing::PAGE as usize;

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
        caller: &Caller,
        request: DaemonRequest,
        requester: Box<dyn Requester>,
    ) -> Result<(), EngineError> {
        mark_variant!(
            &request,
            DaemonRequest {
                Submit,
                Quote,
                WhatIf,
                Shadow,
                Change,
                Cancel,
                Hold,
                Release,
                Requeue,
                Extend,
                Resize,
                Signal,
                BeginStep,
                EndStep,
                Pause,
                Modify,
                Preview,
                Reserve,
                RemoveReservation,
                Reservations,
                Drain,
                HoldStarts,
                Jobs,
                Job,
                Wait,
                Pools,
                Limits,
                Status,
            }
        );
        match request {
            DaemonRequest::Wait(job) if self.is_unfinished_on_disk(job) => {
                mark!("a client waits for an end");
                self.waiters.add(job, caller.uid, requester);
            }
            // Reads are answered from what is stored, after the commit or its failure.
            request if request.only_reads() => self.reads.push_back((caller.clone(), request, requester)),
            request => {
                let reply = match self.reply(now, caller, request) {
                    Ok(reply) => Ok(reply),
                    Err(RequestError::Refused(problem)) => {
                        mark_variant!(
                            problem.code,
                            ProblemCode {
                                Malformed,
                                Refused,
                                NotFound,
                                Forbidden,
                                Conflict,
                                Unavailable,
                                Storage,
                                Internal,
                            }
                        );
                        Err(problem)
                    }
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

    /// Returns whether a job is unfinished in the durable state. A job that finished in this batch is.
    pub(crate) fn is_unfinished_on_disk(&self, job: i64) -> bool {
        self.jobs.contains(job) || self.batch.has_finished(job)
    }

    /// Answers the requests that only read. Those beyond a number of jobs are left for the next batch.
    pub(crate) fn answer_reads(&mut self, now: Now) {
        let mut jobs = 0;
        while jobs < READ_JOBS
            && let Some((caller, request, requester)) = self.reads.pop_front()
        {
            if requester.is_gone() {
                continue;
            }
            let reply = self.answer(now, &caller, &request);
            if let Ok(DaemonReply::Jobs(views)) = &reply {
                jobs += views.len();
            }
            requester.reply(reply);
        }
    }

    fn reply(&mut self, now: Now, caller: &Caller, request: DaemonRequest) -> Handled {
        match request {
            DaemonRequest::Submit(submission) => self.submit(now, caller, &submission),
            DaemonRequest::Change(request) => self.change_jobs(now, caller, &request),
            DaemonRequest::Cancel { job, array } => {
                let select = if array { Selection::of_array(job) } else { Selection::of_job(job) };
                self.change_one(now, caller, JobChange::Cancel, select, false)
            }
            DaemonRequest::Hold { job, move_promises } => {
                self.change_one(now, caller, JobChange::Hold, Selection::of_job(job), move_promises)
            }
            DaemonRequest::Release(job) => {
                self.change_one(now, caller, JobChange::Release, Selection::of_job(job), false)
            }
            DaemonRequest::Requeue { job, move_promises } => self.requeue(now, caller, job, move_promises),
            DaemonRequest::Extend { job, by } => self.extend(now, caller, job, by),
            DaemonRequest::Resize { job, cpus } => self.resize_wanted(now, caller, job, cpus),
            DaemonRequest::Signal { job, signal } => self.signal(caller, job, signal),
            DaemonRequest::BeginStep { job, step } => self.begin_step(now, caller, job, step),
            DaemonRequest::EndStep { job, end } => self.end_step(now, caller, job, end),
            DaemonRequest::Pause { job, on } => self.pause(now, caller, job, on),
            DaemonRequest::Modify { job, changes, move_promises } => {
                self.modify(now, caller, job, &changes, move_promises)
            }
            DaemonRequest::Preview { job, change } => self.preview(now, caller, job, &change),
            DaemonRequest::Reserve(reservation) => self.reserve(now, caller, &reservation),
            DaemonRequest::RemoveReservation(name) => self.remove_reservation(now, caller, &name),
            DaemonRequest::Drain(on) => Ok(self.drain(caller, on)?),
            DaemonRequest::HoldStarts(on) => Ok(self.request_hold_starts(caller, on)?),
            DaemonRequest::Quote(_)
            | DaemonRequest::WhatIf(_)
            | DaemonRequest::Shadow(_)
            | DaemonRequest::Jobs(_)
            | DaemonRequest::Job(_)
            | DaemonRequest::Wait(_)
            | DaemonRequest::Pools
            | DaemonRequest::Reservations
            | DaemonRequest::Limits
            | DaemonRequest::Status => Ok(self.answer(now, caller, &request)?),
        }
    }

    /// Returns an unfinished job that the caller changes now.
    pub(crate) fn owned_job(&self, caller: &Caller, job: i64) -> Result<&Record, Problem> {
        let record = self.changeable_job(caller, job)?;
        if caller.uid != record.uid {
            let name = self.info.users.0;
            tracing::info!("operator {} changes job {job} of {}", name(caller.uid), name(record.uid));
        }
        Ok(record)
    }

    /// Returns an unfinished job that the caller may change.
    pub(crate) fn changeable_job(&self, caller: &Caller, job: i64) -> Result<&Record, Problem> {
        let Some(record) = self.jobs.get(job) else {
            if let Some(problem) = self.unrecorded_problem(job) {
                return Err(problem);
            }
            mark!("refused: the job is over or unknown");
            let over = self.journal.job(job).ok().flatten().is_some();
            return Err(if over {
                Problem::new(ProblemCode::Conflict, format!("job {job} is over"))
            } else {
                no_job(job)
            });
        };
        if !self.info.may_read(caller, record) {
            mark!("refused: the job of another user");
            return Err(Problem::new(ProblemCode::Forbidden, format!("job {job} is another user's")));
        }
        Ok(record)
    }

    fn request_hold_starts(&mut self, caller: &Caller, on: bool) -> Result<DaemonReply, Problem> {
        self.info.check_operator(caller, "hold starts")?;
        tracing::info!("operator {} holds starts without the daemon: {on}", (self.info.users.0)(caller.uid));
        self.hold_starts(on);
        Ok(DaemonReply::JobIds(JobIds { jobs: vec![] }))
    }

    fn drain(&mut self, caller: &Caller, on: bool) -> Result<DaemonReply, Problem> {
        self.info.check_operator(caller, "drain the daemon")?;
        tracing::info!("operator {} drains the daemon: {on}", (self.info.users.0)(caller.uid));
        mark!("drained");
        self.values.drain(on);
        self.batch.touch_values();
        Ok(DaemonReply::JobIds(JobIds { jobs: vec![] }))
    }
}
