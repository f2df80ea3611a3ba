//! A job as three separate things: its identity, its request and its actual runtime.

use crate::devices::DeviceDemand;
use crate::{Form, Procs, Resources, Span, Time};

/// The handle of a job in the system: small, dense, and reused after the job has left.
///
/// The event source assigns it. It carries no order: ties are broken by submit time, then by
/// [`JobNumber`], then by the ledger's admission number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u32);

impl JobId {
    /// Returns the handle as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The external number of a job: field 1 of a log, or the number shown to a user.
pub type JobNumber = i64;

/// The request of a user: all data on a job that a policy may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The job's number.
    pub number: JobNumber,
    /// The submit time.
    pub submit: Time,
    /// The time limit (estimate).
    pub estimate: Span,
    /// The requested resources.
    pub demand: Resources,
    /// The requested devices, of the classes of the machine. A machine without devices ignores them.
    pub devices: Option<DeviceDemand>,
    /// The form of the job, where it may span several hosts.
    pub form: Form,
    /// The user, or `None` if unknown.
    pub user: Option<u32>,
    /// The group of the user, or `None` if unknown.
    pub group: Option<u32>,
    /// The queue of the submission, or `None` if unknown.
    pub queue: Option<u32>,
    /// The bounds for a policy that resizes the job; `None` for any size up to the request.
    pub sizes: Option<Sizes>,
    /// The other constraints of the user.
    pub constraints: Constraints,
    /// The actual runtime, if the event source discloses it. Only a simulation does, and only to a
    /// clairvoyant policy.
    pub known_runtime: Option<Span>,
}

/// The numbers of processors between which a policy may resize a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The least number, at least 1.
    pub least: Procs,
    /// The largest number that the job uses now, at least the least one and at most its request.
    pub most: Procs,
}

/// The constraints that a user may set besides resources and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Constraints {
    /// The earliest start.
    pub begin: Option<Time>,
    /// The latest end.
    pub deadline: Option<Time>,
    /// Whether the job must not run opportunistically ahead of its start.
    pub in_window_only: bool,
    /// Whether the job must not run for a first quantum ahead of its start.
    pub no_quantum: bool,
    /// Whether its work may be lost and repeated.
    pub restartable: bool,
}

impl Constraints {
    /// No constraints.
    pub const NONE: Constraints = Constraints {
        begin: None,
        deadline: None,
        in_window_only: false,
        no_quantum: false,
        restartable: false,
    };
}

impl Request {
    /// Returns a request by an unknown user.
    pub const fn new(number: JobNumber, submit: Time, estimate: Span, demand: Resources) -> Request {
        Request {
            number,
            submit,
            estimate,
            demand,
            devices: None,
            form: Form::ANY,
            user: None,
            group: None,
            queue: None,
            sizes: None,
            constraints: Constraints::NONE,
            known_runtime: None,
        }
    }

    /// Returns the requested number of processors.
    pub const fn procs(&self) -> Procs {
        self.demand.cpus_count()
    }

    /// Returns the bounds for a policy that resizes the job.
    pub fn sizes(&self) -> Sizes {
        self.sizes.unwrap_or(Sizes { least: Procs::ONE, most: self.procs() })
    }

    /// Returns the span for which a plan holds the resources of the job: the estimate, and at least
    /// one tick.
    ///
    /// A job of length zero still holds its processors until its end is observed.
    pub fn planned(&self) -> Span {
        self.estimate.max(Span::TICK)
    }
}

/// The runtime that a policy predicts for a job.
///
/// It takes the place of the estimate in plans and orders. It limits no job: a job is killed at its
/// estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// The runtime by which orders rank the job.
    pub runtime: Span,
    /// The span for which a plan holds its resources.
    pub planned: Span,
}

/// The actual runtime of a job.
///
/// Only the component that plays the machine (the simulator) holds one. No type that reaches a
/// policy contains it, except for a clairvoyant policy ([`Request::known_runtime`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActualRuntime(pub Span);
