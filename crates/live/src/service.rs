//! The questions that the daemon answers: what stands between whoever talks to people and the engine.

use std::future::Future;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::model::{Handed, JobView, Pools, Problem, Quote, Status, Submission, Submitted};

/// Who asks, as the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user's number.
    pub uid: u32,
}

/// Which jobs are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct Filter {
    /// Those that have ended, too.
    pub all: bool,
    /// Only this user's.
    pub uid: Option<u32>,
    /// Only this queue's.
    pub queue: Option<String>,
    /// Only jobs of this array, or the job of that number.
    pub array: Option<i64>,
    /// At most so many: of those that ended, the last ones.
    pub limit: Option<u32>,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// To accept a job, or an array of them.
    Submit(Submission),
    /// What a submission would be promised now.
    Quote(Submission),
    /// To end a job, or take it back; of an array's first number with `array`, all its jobs.
    Cancel {
        /// The job.
        job: i64,
        /// All jobs of its array.
        array: bool,
    },
    /// To keep a waiting job from running; it gives up its window.
    Hold(i64),
    /// To let a held job run again; it gets a new window.
    Release(i64),
    /// To end a running job and run it again.
    Requeue(i64),
    /// To make a job's window longer, by seconds; refused where that would break a promise.
    Extend {
        /// The job.
        job: i64,
        /// By how much, seconds.
        by: f64,
    },
    /// To accept no new jobs, or to go on. What was promised is kept.
    Drain(bool),
    /// Jobs, by number.
    Jobs(Filter),
    /// One job.
    Job(i64),
    /// One job, once it has ended.
    Wait(i64),
    /// The pools from now on.
    Pools,
    /// How the daemon is.
    Status,
}

/// What is answered; which to what, is in the names.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// To a submission.
    Submitted(Submitted),
    /// To a quote.
    Quote(Quote),
    /// To everything that changes jobs, but for what has an answer of its own.
    Handed(Handed),
    /// To what is asked of one job.
    Job(Box<JobView>),
    /// To what is asked of many.
    Jobs(Vec<JobView>),
    /// To the question for the pools.
    Pools(Pools),
    /// To the question how it is.
    Status(Box<Status>),
}

/// Whoever can answer.
pub trait Service: Clone + Send + Sync + 'static {
    /// Answers, when what is answered is on disk.
    fn ask(&self, caller: Caller, question: Question) -> impl Future<Output = Result<Reply, Problem>> + Send;
}
