//! A decision that the ledger refused: always a defect of a policy or of an event source.

use std::fmt;

use crate::{JobNumber, Time};

/// The rule that a decision or an event broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A decision concerns a job in the ledger.
    UnknownJob,
    /// A handle names one job at a time.
    HandleInUse,
    /// Only a waiting job can start, and only once.
    NotWaiting,
    /// Only a running job can end or be overdue.
    NotRunning,
    /// A job cannot start before it was submitted.
    StartBeforeSubmit,
    /// A placement holds exactly the requested amount, of the kinds that the machine accounts.
    WrongAmount,
    /// A job is placed on as many hosts as the machine allows.
    TooManyHosts,
    /// Only a suspended job can be resumed.
    NotSuspended,
    /// A running job keeps its host and all but its processors.
    OtherHost,
    /// A quantum ends after it began.
    NoQuantum,
    /// A placement names hosts and slots that exist.
    NoSuchHost,
    /// A slot of the matrix is opened below the policy's limit. An alternate slot must be in use.
    NoSuchRow,
    /// A host allocates at most its free resources.
    OverCommitted,
    /// Processors are named where the ledger names them. They are as many as the job holds, and no
    /// other job holds them.
    WrongPes,
    /// A job that is being swapped out keeps its processors until the swap is complete.
    StillWriting,
    /// A promise never moves later.
    PromiseMovedLater,
    /// A promised job starts no later than promised.
    PromiseMissed,
    /// A promise can be broken only for a cause outside the policy.
    BrokenWithoutCause,
    /// Time does not run backwards.
    TimeWentBack,
    /// A wake-up lies in the future.
    WakeInThePast,
}

impl Rule {
    fn text(self) -> &'static str {
        match self {
            Rule::UnknownJob => "only a job in the ledger can be decided about",
            Rule::HandleInUse => "a handle names one job at a time",
            Rule::NotWaiting => "only a waiting job can start, and only once",
            Rule::NotRunning => "only a running job can end or be overdue",
            Rule::StartBeforeSubmit => "no start before the submission",
            Rule::WrongAmount => "a placement holds exactly what was asked for",
            Rule::TooManyHosts => "a job lies on as many hosts as the machine allows",
            Rule::NotSuspended => "only a suspended job can be resumed",
            Rule::OtherHost => "a running job keeps its host and all but its processors",
            Rule::NoQuantum => "a quantum ends after it began",
            Rule::NoSuchHost => "a placement names hosts and slots that exist",
            Rule::NoSuchRow => {
                "a row is opened below the limit of rows, and used if others run in it besides"
            }
            Rule::OverCommitted => "no host gives more than it has free",
            Rule::WrongPes => "named processors are as many as the job holds, and nobody else's",
            Rule::StillWriting => "a job that is being written out keeps its processors until that is done",
            Rule::PromiseMovedLater => "a promise never moves later",
            Rule::PromiseMissed => "a promised job starts no later than promised",
            Rule::BrokenWithoutCause => "a promise is broken only for a cause outside the policy",
            Rule::TimeWentBack => "time does not run backwards",
            Rule::WakeInThePast => "a wake-up lies in the future",
        }
    }
}

/// A refused decision: the policy, the job, the instant and the rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Violation {
    /// The policy's name, or the part of the driver that refused.
    pub policy: String,
    /// The job, where there is one.
    pub job: Option<JobNumber>,
    /// The instant.
    pub now: Time,
    /// The rule.
    pub rule: Rule,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policy {} broke a rule at {} s", self.policy, self.now)?;
        if let Some(job) = self.job {
            write!(f, " with job {job}")?;
        }
        write!(f, ": {} (please report this with the trace)", self.rule.text())
    }
}
