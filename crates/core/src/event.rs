//! What happens to a scheduler (events) and what it does (reasons, refusals, effects).

use crate::{JobId, Procs, Request, Resources, Span, Time};

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndHow {
    /// By itself.
    Done,
    /// It reached its estimate and was killed.
    KilledAtEstimate,
    /// Somebody else ended it: its user, an administrator, or a machine that went away under it.
    Cancelled,
}

/// A job that ended at this instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The job.
    pub job: JobId,
    /// How it ended.
    pub how: EndHow,
}

/// A job that was submitted at this instant, under the handle by which it will be known while it is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The handle; not in use by another job.
    pub job: JobId,
    /// What its user asked for.
    pub request: Request,
}

/// A request that was changed after its submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amendment {
    /// The job, waiting or running.
    pub job: JobId,
    /// What is different.
    pub change: Change,
}

/// What is different in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The run time that the scheduler was told.
    Estimate(Span),
    /// The earliest start.
    Begin(Option<Time>),
}

/// Everything that happens at one instant, by kind, as its source saw it.
///
/// The [`Driver`](crate::Driver) puts the kinds in the order that the convention of the run prescribes.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// Jobs that ended, in the order in which they had started. One that waits may have ended too, if it ran ahead of its
    /// start on what was idle.
    pub ended: Vec<Ended>,
    /// Running jobs whose expected end is now and that did not end.
    pub overdue: Vec<JobId>,
    /// Waiting jobs that were taken back by their users, or held.
    pub withdrawn: Vec<JobId>,
    /// Requests that were changed.
    pub amended: Vec<Amendment>,
    /// What became of the machine, if anything did.
    pub fault: Option<Fault>,
    /// How many processors interactive work uses from now on, if that changed; it matters to opportunistic work only.
    pub interactive: Option<Procs>,
    /// Jobs that were submitted, in the order of the trace.
    pub submitted: Vec<Submission>,
}

impl Round {
    /// Whether nothing happened but the passing of time.
    pub fn is_empty(&self) -> bool {
        let Round { ended, overdue, withdrawn, amended, fault, interactive, submitted } = self;
        let jobs = ended.len() + overdue.len() + withdrawn.len() + amended.len() + submitted.len();
        jobs == 0 && fault.is_none() && interactive.is_none()
    }

    /// Forgets everything and keeps the memory.
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

/// What can become of a machine under its scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nobody scheduled for a while: the daemon was not there, or the machine slept. Ends and starts of that time come late.
    Away,
    /// The pool of a queue now has no more than this, in all; or again as much. Only for a machine of one host.
    Capacity {
        /// The queue, by position in its [`System`](crate::System).
        queue: u32,
        /// What its pool has.
        capacity: Resources,
    },
}

impl Fault {
    /// Whether it is one for this queue, by position.
    pub(crate) fn concerns(&self, queue: u32) -> bool {
        match self {
            Fault::Away => true,
            Fault::Capacity { queue: its, .. } => *its == queue,
        }
    }
}

/// One event, as a policy is told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A job was submitted; the ledger has its request.
    Submitted(JobId),
    /// A job ended; the ledger still shows it as it was, for the length of this call: running, or suspended or requeued at
    /// this very instant, too late.
    Ended(Ended),
    /// A running job is past its expected end and runs on: nobody knows its end now.
    Overdue(JobId),
    /// The wake-up that the policy asked for is due.
    Timer,
    /// What the job holds, or until when, was changed by somebody else than this policy: a policy around it lent the
    /// job a quantum, took that back, suspended or resumed it. The ledger shows how it stands now.
    Changed(JobId),
    /// Something that is planned for or around was changed from outside: jobs were withdrawn, requests amended, capacity
    /// was lost or came back, or nobody scheduled for a while. The policy has just been rebuilt from the ledger, which
    /// shows how all stands now. One that keeps a plan has to make it possible again, and to look for what became free.
    Rebuilt,
}

/// Why a job started when it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StartReason {
    /// In the instant of its submission, without passing a job that waits before it in the queue.
    Immediate,
    /// In its turn: as the head of the queue, or at the start reserved for it.
    Reserved,
    /// Ahead of its turn: past a job before it in the queue that still waits.
    Backfilled,
    /// At the start of a window that was promised to its user.
    Promised,
    /// For a short slice at once, whatever the queue.
    Quantum,
}

impl StartReason {
    /// The word that tables and files use.
    pub const fn as_str(self) -> &'static str {
        match self {
            StartReason::Immediate => "at_once",
            StartReason::Reserved => "reserved",
            StartReason::Backfilled => "backfilled",
            StartReason::Promised => "promised",
            StartReason::Quantum => "quantum",
        }
    }
}

/// Why a policy will never start a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// It asks for more than the largest of the policy's job classes, or than any host has that runs its class.
    BeyondClasses,
    /// It asks for more than there ever is.
    TooLarge,
    /// There is no window for it within the horizon.
    NoWindow,
    /// There is no window for it that ends by its deadline.
    Deadline,
}

impl Refusal {
    /// The word that tables and files use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Refusal::BeyondClasses => "beyond_classes",
            Refusal::TooLarge => "too_large",
            Refusal::NoWindow => "no_window",
            Refusal::Deadline => "deadline",
        }
    }
}

/// Why a promise could not be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreachCause {
    /// A running job stayed past its expected end and still holds the processors.
    Overdue,
    /// Nobody scheduled when it was due: the daemon was not there, or the machine slept.
    Away,
    /// The machine lost capacity.
    Capacity,
    /// Another request was amended.
    Amended,
}

impl BreachCause {
    /// The word that tables and files use.
    pub const fn as_str(self) -> &'static str {
        match self {
            BreachCause::Overdue => "overdue",
            BreachCause::Away => "away",
            BreachCause::Capacity => "capacity",
            BreachCause::Amended => "amended",
        }
    }
}

/// What a round changed, for whoever plays or drives the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The job starts now. Where is in the ledger.
    Started {
        /// The job.
        job: JobId,
        /// Why now.
        reason: StartReason,
        /// How long it is expected to hold its resources.
        planned: Span,
    },
    /// The job has been promised to start at `latest` or before; earlier than any promise before.
    Promised {
        /// The job.
        job: JobId,
        /// The latest start.
        latest: Time,
    },
    /// The promise cannot be kept any more; the new one is `latest`.
    PromiseBroken {
        /// The job.
        job: JobId,
        /// The new latest start.
        latest: Time,
        /// What made it impossible.
        why: BreachCause,
    },
    /// The policy intends to start the job then. A plan, not a promise: it may move either way.
    Planned {
        /// The job.
        job: JobId,
        /// The planned start.
        start: Time,
    },
    /// The job stops working. It leaves its processors and keeps all else that it holds; or it keeps everything until it was
    /// written out, and then it is told to have left.
    Suspended {
        /// The job.
        job: JobId,
    },
    /// The job, which was suspended, was written out and holds nothing any more.
    SwappedOut {
        /// The job.
        job: JobId,
    },
    /// The job has its processors back, or others, and runs on; first it is read back, if that takes time.
    Resumed {
        /// The job.
        job: JobId,
    },
    /// The job runs on with another number of processors.
    Resized {
        /// The job.
        job: JobId,
        /// How many it has now.
        procs: Procs,
    },
    /// The running job is in another row now, on other processors, or both; where is in the ledger. If moving takes time, it goes
    /// on after that.
    Moved {
        /// The job.
        job: JobId,
    },
    /// The running job has another share of the time now, since it runs in more rows or fewer, or more or fewer are used: its end
    /// is another.
    PaceChanged {
        /// The job.
        job: JobId,
    },
    /// The job was taken off the machine and waits again.
    Requeued {
        /// The job.
        job: JobId,
        /// What it had done and is lost, processor-ticks.
        lost: u128,
    },
    /// The waiting job runs on this many idle processors from now on, ahead of its start; with 0 it is parked. A start
    /// ends it without this.
    OpportunisticProcs {
        /// The job.
        job: JobId,
        /// How many it has now.
        procs: Procs,
    },
    /// The policy will never start the job, which leaves the system.
    Refused {
        /// The job.
        job: JobId,
        /// Why.
        why: Refusal,
    },
}

impl Effect {
    /// Whose effect it is.
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
            | Effect::Refused { job, .. } => job,
        }
    }
}
