//! The input of a simulation.

use miserly_core::{ActualRuntime, Request, Span};

use crate::label::{Label, LabelValue};

/// A job of a simulation: its request, and the facts that no policy may know.
#[derive(Clone, Debug)]
pub struct Job {
    /// The request of its user.
    pub request: Request,
    /// The time that it runs on the processors that it requests.
    pub runtime: ActualRuntime,
    /// Whether it is killed at its time limit.
    pub killed: bool,
    /// The end of the job as its log has it.
    pub status: LoggedStatus,
    /// The memory that it really uses, kB for all its processors; `None` if that is unknown.
    pub used_memory: Option<u64>,
    /// The properties by which the jobs of the run are grouped.
    pub labels: Vec<(Label, LabelValue)>,
}

impl Job {
    /// Returns a job that runs for `runtime`, ends by itself and uses the memory that it requests.
    ///
    /// ```
    /// use miserly_core::{Request, Resources, Span, Time};
    /// use miserly_sim::Job;
    ///
    /// let request = Request::new(1, Time::ZERO, Span::from_ticks(90), Resources::cpus(4));
    /// assert!(!Job::new(request, Span::from_ticks(60)).killed);
    /// ```
    pub const fn new(request: Request, runtime: Span) -> Job {
        Job {
            request,
            runtime: ActualRuntime(runtime),
            killed: false,
            status: LoggedStatus::Unknown,
            used_memory: None,
            labels: Vec::new(),
        }
    }
}

miserly_core::named_enum! {
    /// The end of a job as its log has it. It decides nothing, and is only a way to group jobs.
    #[derive(Default)]
    pub enum LoggedStatus {
        /// It came to its end.
        Completed "completed",
        /// It failed, or was killed.
        Failed "failed",
        /// Its user cancelled it.
        Cancelled "cancelled",
        /// The log has no status.
        #[default]
        Unknown "unknown",
    }
}
