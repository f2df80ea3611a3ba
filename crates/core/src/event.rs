//! The input of a scheduler (events) and its output (reasons, refusals, effects).

use crate::devices::CellId;
use crate::{JobId, Procs, Request, Resources, Sizes, Span, Time};

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndHow {
    /// The job ended by itself.
    Done,
    /// The job reached its time limit and was killed.
    KilledAtEstimate,
    /// The user or an administrator ended the job, or its machine went away.
    Cancelled,
}

/// A job that ended at this instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The job.
    pub job: JobId,
    /// The way in which it ended.
    pub how: EndHow,
}

/// A job that was submitted at this instant, with its handle while it is in the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The handle. No other job uses it.
    pub job: JobId,
    /// The request of the user.
    pub request: Request,
}

/// A request that was changed after its submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amendment {
    /// The job, waiting or running.
    pub job: JobId,
    /// The change.
    pub change: Change,
}

/// A change of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The time limit.
    Estimate(Span),
    /// The earliest start.
    Begin(Option<Time>),
    /// The bounds of its sizes. The request, and so the work, stays the same.
    Sizes(Sizes),
    /// The whole request of a waiting job that has not run.
    ///
    /// Without `keeps_promise` the job gives up its promise and its plan. Its policy places it again, before other jobs move
    /// into the place.
    Request {
        /// The new request.
        request: Box<Request>,
        /// Whether the promise can be kept: the job requests no more than before.
        keeps_promise: bool,
    },
}

/// All events of one instant, by kind, as their source observed them.
///
/// The [`Driver`](crate::Driver) puts the kinds in the order that the convention of the run
/// prescribes.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// Jobs that ended, in the order of their starts.
    ///
    /// A waiting job may have ended too, if it ran opportunistically ahead of its start.
    pub ended: Vec<Ended>,
    /// Running jobs that are expected to end now and did not end.
    pub overdue: Vec<JobId>,
    /// Waiting jobs that their users withdrew or held.
    pub withdrawn: Vec<JobId>,
    /// Requests that were changed.
    pub amended: Vec<Amendment>,
    /// A fault of the machine, if any.
    pub fault: Option<Fault>,
    /// The number of processors that interactive work uses from now on, if it changed. Only
    /// opportunistic jobs depend on it.
    pub interactive: Option<Procs>,
    /// Jobs that were submitted, in the order of the trace.
    pub submitted: Vec<Submission>,
}

impl Round {
    /// Returns whether the round has no event. Only time has passed.
    pub fn is_empty(&self) -> bool {
        let Round { ended, overdue, withdrawn, amended, fault, interactive, submitted } = self;
        let jobs = ended.len() + overdue.len() + withdrawn.len() + amended.len() + submitted.len();
        jobs == 0 && fault.is_none() && interactive.is_none()
    }

    /// Removes all events and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.ended.clear();
        self.overdue.clear();
        self.withdrawn.clear();
        self.amended.clear();
        self.fault = None;
        self.interactive = None;
        self.submitted.clear();
    }
}

/// A fault of a machine under its scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No scheduling took place for a while: the daemon was not running, or the machine slept. Ends
    /// and starts of that time are reported late.
    Away,
    /// The hosts changed, or something else than this scheduler uses them. The ledger was restored on what there is now
    /// ([`Ledger::restored`](crate::Ledger::restored)).
    Hosts,
    /// The total capacity of the pool of a queue changed to this amount, by a loss or a recovery.
    /// Only for a machine of one host.
    Capacity {
        /// The queue, by position in its [`System`](crate::System).
        queue: u32,
        /// The capacity of its pool.
        capacity: Resources,
    },
    /// Devices of a cell were lost, or recovered. No job holds one of them.
    Devices {
        /// The queue, by position in its [`System`](crate::System).
        queue: u32,
        /// The cell.
        cell: CellId,
        /// The lost devices from now on: positions of the cell, one bit each.
        lost: u64,
    },
}

impl Fault {
    /// Returns whether the fault concerns this queue, by position.
    pub(crate) fn concerns(&self, queue: u32) -> bool {
        match self {
            Fault::Away | Fault::Hosts => true,
            Fault::Capacity { queue: its, .. } | Fault::Devices { queue: its, .. } => *its == queue,
        }
    }
}

/// One event, as a policy receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A job was submitted. The ledger has its request.
    Submitted(JobId),
    /// A job ended. During this call the ledger still shows the job: running, or suspended or
    /// requeued at this instant.
    Ended(Ended),
    /// A running job is past its expected end and continues. Its end is now unknown.
    Overdue(JobId),
    /// The expected end of a running job was changed by a policy around this one, which predicts
    /// runtimes. It was `before`.
    EndMoved {
        /// The job.
        job: JobId,
        /// The expected end before the change.
        before: Time,
    },
    /// The wake-up that the policy requested is due.
    Timer,
    /// The resources of the job, or their time, were changed outside this policy. An outer policy
    /// started or ended a quantum of the job, or suspended or resumed it. The ledger shows the
    /// current state.
    Changed(JobId),
    /// Input of the plan was changed from outside. Jobs were withdrawn, requests amended, capacity
    /// lost or regained, or no scheduling took place for a while.
    ///
    /// The policy was just rebuilt from the ledger, which shows the current state. A policy with a
    /// plan must make the plan feasible again and search for freed capacity.
    Rebuilt,
}

crate::listed_enum! {
    /// The reason for the start of a job.
    pub enum StartReason {
        /// At the instant of its submission, without overtaking a waiting job before it in the queue.
        Immediate "immediate",
        /// In queue order: as the head of the queue, or at the start reserved for it.
        Reserved "reserved",
        /// Ahead of a job before it in the queue that still waits.
        Backfilled "backfilled",
        /// At the start of a window that was promised to its user.
        Promised "promised",
        /// For a short quantum at once, regardless of the queue.
        Quantum "quantum",
    }
}

crate::listed_enum! {
    /// The reason for which a policy will never start a job.
    pub enum Refusal {
        /// It requests more than the largest job class of the policy, or more than any host that runs
        /// its class.
        BeyondClasses "beyond_classes",
        /// It requests more than the maximum capacity.
        TooLarge "too_large",
        /// There is no window for it within the horizon.
        NoWindow "no_window",
        /// There is no window for it that ends by its deadline.
        Deadline "deadline",
        /// It was taken off the machine for another job, and is not run again.
        Preempted "preempted",
    }
}

crate::listed_enum! {
    /// The reason for which a promise could not be kept.
    pub enum BreachCause {
        /// A running job stayed past its expected end and still holds the processors.
        Overdue "overdue",
        /// No scheduling took place at the promised start: the daemon was not running, or the machine
        /// slept.
        Away "away",
        /// The machine lost capacity.
        Capacity "capacity",
        /// Another request was amended.
        Amended "amended",
    }
}

/// A change made by a round, for the component that plays or drives the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The job starts now. The ledger has its placement.
    Started {
        /// The job.
        job: JobId,
        /// The start reason.
        reason: StartReason,
        /// The span for which it may hold its resources, by its estimate.
        planned: Span,
    },
    /// The job has a promise to start at `latest` or before. It is earlier than any promise before.
    Promised {
        /// The job.
        job: JobId,
        /// The latest start.
        latest: Time,
    },
    /// The promise cannot be kept. The new one is `latest`.
    PromiseBroken {
        /// The job.
        job: JobId,
        /// The new latest start.
        latest: Time,
        /// The breach cause.
        why: BreachCause,
    },
    /// The intended start of the job. It is a plan, not a promise, and may move either way.
    Planned {
        /// The job.
        job: JobId,
        /// The planned start.
        start: Time,
    },
    /// The job stops working. It leaves its processors and keeps all its other resources. If it is
    /// swapped out, it keeps all resources until the swap completes and [`Effect::SwappedOut`]
    /// follows.
    Suspended {
        /// The job.
        job: JobId,
    },
    /// The suspended job was swapped out and holds no resources.
    SwappedOut {
        /// The job.
        job: JobId,
    },
    /// The job has its processors back, or others, and continues. It is swapped in first, if that
    /// takes time.
    Resumed {
        /// The job.
        job: JobId,
    },
    /// The job continues with another number of processors.
    Resized {
        /// The job.
        job: JobId,
        /// The number of processors now.
        procs: Procs,
    },
    /// The running job is now in another slot, on other processors, or both. The ledger has its
    /// placement. If the move takes time, the job continues after it.
    Moved {
        /// The job.
        job: JobId,
    },
    /// The running job has another share of the time. The number of its slots or of all used slots
    /// changed. Its expected end changes.
    PaceChanged {
        /// The job.
        job: JobId,
    },
    /// The job was taken off the machine and waits again.
    Requeued {
        /// The job.
        job: JobId,
        /// The work that is lost, in processor-ticks.
        lost: u128,
    },
    /// The waiting job runs on this many idle processors from now on, ahead of its start. With 0 it
    /// is parked. A start ends it without this effect.
    OpportunisticProcs {
        /// The job.
        job: JobId,
        /// The number of processors now.
        procs: Procs,
    },
    /// The running job is expected to end at another instant, by a prediction. Its limit stays.
    EndMoved {
        /// The job.
        job: JobId,
        /// The expected end.
        end: Time,
    },
    /// The policy will never start the job. The job leaves the system.
    Refused {
        /// The job.
        job: JobId,
        /// The reason.
        why: Refusal,
    },
}

impl Effect {
    /// Returns the job of the effect.
    pub const fn job(&self) -> JobId {
        match *self {
            Effect::Started { job, .. }
            | Effect::Promised { job, .. }
            | Effect::PromiseBroken { job, .. }
            | Effect::Planned { job, .. }
            | Effect::Suspended { job }
            | Effect::SwappedOut { job }
            | Effect::Resumed { job }
            | Effect::Resized { job, .. }
            | Effect::Moved { job }
            | Effect::PaceChanged { job }
            | Effect::Requeued { job, .. }
            | Effect::OpportunisticProcs { job, .. }
            | Effect::EndMoved { job, .. }
            | Effect::Refused { job, .. } => job,
        }
    }
}
