//! Requests to the daemon, and their replies.

use std::fmt;

use miserly_api::model::{
    BeginStepRequest, ChangeRequest, ChangedJobs, EndStepRequest, Filter, JobChange, JobIds, JobView,
    LimitsReport, Modification, Moves, Pools, Problem, Quote, Reservation, ShadowFilter, ShadowReport,
    SignalRequest, Status, StepNumber, Submission, Submitted, WhatIf, WhatIfAnswer,
};

/// A request to the daemon.
#[derive(Clone, Debug, PartialEq)]
pub enum DaemonRequest {
    /// Accept a job, or an array of jobs.
    Submit(Submission),
    /// Compute the promise that a submission would get now.
    Quote(Submission),
    /// Compute how starts would change with a change of a queue.
    WhatIf(Box<WhatIf>),
    /// Report on the shadows.
    Shadow(ShadowFilter),
    /// Change several jobs: one round, where the change admits it, and one commit.
    Change(Box<ChangeRequest>),
    /// End a job, or withdraw it.
    Cancel {
        /// The job.
        job: i64,
        /// Cancel all jobs of the array that starts with `job`.
        array: bool,
    },
    /// Hold a waiting job. It gives up its window.
    Hold {
        /// The job.
        job: i64,
        /// Break promises to jobs that wait for it.
        move_promises: bool,
    },
    /// Release a held job. It gets a new window.
    Release(i64),
    /// End a running job and run it again.
    Requeue {
        /// The job.
        job: i64,
        /// Break promises to jobs that wait for it.
        move_promises: bool,
    },
    /// Extend the time limit of a job. Refused if a promise would break.
    Extend {
        /// The job.
        job: i64,
        /// The additional time, in seconds.
        by: f64,
    },
    /// Change the most processors that a resizable job wants.
    Resize {
        /// The job.
        job: i64,
        /// The processors.
        cpus: u64,
    },
    /// Send a signal to the processes of a running job.
    Signal {
        /// The job.
        job: i64,
        /// The signal.
        signal: SignalRequest,
    },
    /// Record the start of a step of a running job.
    BeginStep {
        /// The job.
        job: i64,
        /// The step.
        step: BeginStepRequest,
    },
    /// Record the end of a step of a running job.
    EndStep {
        /// The job.
        job: i64,
        /// The end.
        end: EndStepRequest,
    },
    /// Stop the processes of a job in its window, or let them continue. Its window goes on.
    Pause {
        /// The job.
        job: i64,
        /// Whether it stops.
        on: bool,
    },
    /// Change a waiting job. Refused if the promise to another job would break.
    Modify {
        /// The job.
        job: i64,
        /// The changes.
        changes: Box<Modification>,
        /// Break promises to jobs that wait for it.
        move_promises: bool,
    },
    /// Compute which promises a change of a job would move.
    Preview {
        /// The job.
        job: i64,
        /// The change.
        change: Box<JobChange>,
    },
    /// Reserve a part of a pool for some users, at some times.
    Reserve(Box<Reservation>),
    /// Remove a reservation, by name.
    RemoveReservation(String),
    /// List the reservations.
    Reservations,
    /// Accept no new jobs, or accept jobs again. Promises are kept.
    Drain(bool),
    /// Withdraw all waiting shims and launch no more, so that nothing starts without the daemon; or end that.
    HoldStarts(bool),
    /// List jobs, by number.
    Jobs(Filter),
    /// Show one job.
    Job(i64),
    /// Show one job once it has finished.
    Wait(i64),
    /// Show the free capacity of the pools from now on.
    Pools,
    /// Show the limits of the user, and their use.
    Limits,
    /// Show the state of the daemon.
    Status,
}

impl DaemonRequest {
    /// Returns whether the request changes nothing and has no effect on the schedule.
    pub fn only_reads(&self) -> bool {
        use DaemonRequest::{Job, Jobs, Limits, Pools, Quote, Reservations, Shadow, Status, Wait, WhatIf};
        matches!(
            self,
            Quote(_)
                | WhatIf(_)
                | Shadow(_)
                | Jobs(_)
                | Job(_)
                | Wait(_)
                | Pools
                | Limits
                | Reservations
                | Status
        )
    }
}

/// The reply to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum DaemonReply {
    /// To a submission.
    Submitted(Submitted),
    /// To a quote.
    Quote(Quote),
    /// To a what-if question.
    WhatIf(Box<WhatIfAnswer>),
    /// The report on the shadows.
    Shadow(Box<ShadowReport>),
    /// To a change of a waiting job, and to a question about a change.
    Moves(Box<Moves>),
    /// To a change of several jobs.
    Changed(Box<ChangedJobs>),
    /// To a record of a step.
    Step(StepNumber),
    /// To any other request that changes jobs.
    JobIds(JobIds),
    /// To a request about one job.
    Job(Box<JobView>),
    /// To a list of jobs.
    Jobs(Vec<JobView>),
    /// To a request for the reservations, and to a change of them.
    Reservations(Vec<Reservation>),
    /// To a request for the pools.
    Pools(Pools),
    /// To a request for the limits of the user.
    Limits(Box<LimitsReport>),
    /// To a request for the state of the daemon.
    Status(Box<Status>),
}

/// The origin of a request, to which the engine replies once the outcome is durable.
pub trait Requester: fmt::Debug + Send {
    /// Delivers the reply. A requester that has gone ignores it.
    fn reply(self: Box<Self>, reply: Result<DaemonReply, Problem>);

    /// Returns whether the requester has gone and ignores a reply.
    fn is_gone(&self) -> bool;
}
