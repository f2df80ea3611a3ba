//! A job as three separate things: its name, what its user asked for, and how long it really runs.

use crate::{Procs, Resources, Span, Time};

/// The handle of a job that is in the system: small, dense, and reused once the job is gone.
///
/// Whoever feeds the driver hands it out. It carries no order: ties are broken by submit time, then by
/// [`JobNumber`], then by the ledger's admission number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u32);

impl JobId {
    /// The handle as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number by which a job is known outside: field 1 of a log, or the number a user was told.
pub type JobNumber = i64;

/// What the user asked for: everything that a policy may know of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The job's number.
    pub number: JobNumber,
    /// When it was submitted.
    pub submit: Time,
    /// The run time that the scheduler was told.
    pub estimate: Span,
    /// The resources that it asks for.
    pub demand: Resources,
    /// Who submitted it; `None` where that is not known.
    pub user: Option<u32>,
    /// The queue it was submitted to; `None` where that is not known.
    pub queue: Option<u32>,
    /// What else its user asked for.
    pub constraints: Constraints,
}

/// What a user may ask for besides resources and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Constraints {
    /// Not before this instant.
    pub begin: Option<Time>,
    /// To be over by this instant, whatever happens.
    pub deadline: Option<Time>,
    /// Not to run ahead of its start on what is idle.
    pub in_window_only: bool,
    /// Its work may be thrown away and done again.
    pub restartable: bool,
}

impl Constraints {
    /// Nothing else.
    pub const NONE: Constraints =
        Constraints { begin: None, deadline: None, in_window_only: false, restartable: false };
}

impl Request {
    /// A request by an unknown user.
    pub const fn new(number: JobNumber, submit: Time, estimate: Span, demand: Resources) -> Request {
        Request { number, submit, estimate, demand, user: None, queue: None, constraints: Constraints::NONE }
    }

    /// The number of processors asked for.
    pub const fn procs(&self) -> Procs {
        self.demand.cpus_count()
    }

    /// The length of time for which a plan keeps the job's resources: the estimate, and at least one tick,
    /// because a job of no length still holds its processors until its end has been seen.
    pub fn planned(&self) -> Span {
        self.estimate.max(Span::TICK)
    }
}

/// How long a job really runs.
///
/// Only whoever plays the machine (the simulator) holds one. No type that reaches a policy contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActualRuntime(pub Span);
