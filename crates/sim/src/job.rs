//! The input of a simulation.

use miserly_core::{ActualRuntime, Request, Span};

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
        }
    }
}

/// The end of a job as its log has it. It decides nothing, and is only a way to group jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoggedStatus {
    /// It came to its end.
    Completed,
    /// It failed, or was killed.
    Failed,
    /// Its user cancelled it.
    Cancelled,
    /// The log has no status.
    #[default]
    Unknown,
}

impl LoggedStatus {
    /// Every status.
    pub const ALL: [LoggedStatus; 4] =
        [LoggedStatus::Completed, LoggedStatus::Failed, LoggedStatus::Cancelled, LoggedStatus::Unknown];

    /// Returns its name in tables and files.
    pub const fn as_str(self) -> &'static str {
        match self {
            LoggedStatus::Completed => "completed",
            LoggedStatus::Failed => "failed",
            LoggedStatus::Cancelled => "cancelled",
            LoggedStatus::Unknown => "unknown",
        }
    }
}
