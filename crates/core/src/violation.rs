//! A decision that the ledger refused: always a defect of a policy or of an event source.

use std::fmt;

use crate::{JobId, JobNumber, Time};

/// The rule that a decision or an event broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    /// A decision concerns a job in the ledger.
    #[error("a decision concerns a job in the ledger")]
    UnknownJob,
    /// A handle names one job at a time.
    #[error("a handle names one job at a time")]
    HandleInUse,
    /// Only a waiting job can start, and only once.
    #[error("only a waiting job can start, and only once")]
    NotWaiting,
    /// Only a running job can end or be overdue.
    #[error("only a running job can end or be overdue")]
    NotRunning,
    /// A job cannot start before it was submitted.
    #[error("no start before the submission")]
    StartBeforeSubmit,
    /// A placement holds exactly the requested amount, of the kinds that the machine accounts.
    #[error("a placement holds exactly the requested amount")]
    WrongAmount,
    /// A placement has the parts that the form of the request has, on the hosts that it permits.
    #[error("a placement is of the form of the request")]
    WrongForm,
    /// A job is placed on as many hosts as the machine allows.
    #[error("a job is placed on as many hosts as the machine allows")]
    TooManyHosts,
    /// Only a suspended job can be resumed.
    #[error("only a suspended job can be resumed")]
    NotSuspended,
    /// A running job keeps its host and all but its processors.
    #[error("a running job keeps its host and all but its processors")]
    OtherHost,
    /// A quantum ends after it began.
    #[error("a quantum ends after it began")]
    NoQuantum,
    /// A placement names hosts and slots that exist.
    #[error("a placement names hosts and slots that exist")]
    NoSuchHost,
    /// A slot of the matrix is opened below the policy's limit. An alternate slot must be in use.
    #[error("a slot is opened below the maximum number of slots; an alternate slot is in use")]
    NoSuchSlot,
    /// A host allocates at most its free resources.
    #[error("a host allocates at most its free resources")]
    OverCommitted,
    /// Processors are named where the ledger names them. They are as many as the job holds, and no
    /// other job holds them.
    #[error("named processors are as many as the job holds, and no other job holds them")]
    WrongPes,
    /// A placement has the devices that the request demands, on its host, and no other job holds them.
    #[error("a placement has the demanded devices, and no other job holds them")]
    WrongDevices,
    /// A job that is being swapped out keeps its processors until the swap is complete.
    #[error("a job that is being swapped out keeps its processors until the swap is complete")]
    StillWriting,
    /// A promise never moves later.
    #[error("a promise never moves later")]
    PromiseMovedLater,
    /// A promised job starts no later than promised.
    #[error("a promised job starts no later than promised")]
    PromiseMissed,
    /// A promise can be broken only for a cause outside the policy.
    #[error("a promise is broken only for a cause outside the policy")]
    BrokenWithoutCause,
    /// Time does not run backwards.
    #[error("time does not run backwards")]
    TimeWentBack,
    /// A policy makes its decisions without a panic.
    #[error("a policy makes its decisions without a panic")]
    Panicked,
    /// A wake-up lies in the future.
    #[error("a wake-up lies in the future")]
    WakeInThePast,
}

/// The part that broke a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Culprit {
    /// A decision of the policy.
    #[default]
    Policy,
    /// An event for the ledger, with the handle of its job if it has one. The ledger need not have that job.
    Event(Option<JobId>),
}

/// A refused decision or event: the policy, the job, the instant and the rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Violation {
    /// The queue, by position in its [`System`](crate::System).
    pub queue: usize,
    /// The policy's name.
    pub policy: String,
    /// The part that broke the rule.
    pub culprit: Culprit,
    /// The job, where there is one.
    pub job: Option<JobNumber>,
    /// The instant.
    pub now: Time,
    /// The rule.
    pub rule: Rule,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.culprit {
            Culprit::Policy => write!(f, "policy {} broke a rule at {} s", self.policy, self.now)?,
            Culprit::Event(_) => write!(f, "an event broke a rule at {} s", self.now)?,
        }
        if let Some(job) = self.job {
            write!(f, " with job {job}")?;
        }
        let defect = match self.culprit {
            Culprit::Policy => "a defect of the policy; if it is a built-in one, report it with the log",
            Culprit::Event(_) => "a defect of Miserly; report it with the log",
        };
        write!(f, ": {} ({defect})", self.rule)
    }
}
