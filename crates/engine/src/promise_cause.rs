//! The causes for which the plan of a promised job changes.

use miserly_api::model::PromiseChangeReason;
use miserly_core::BreachCause;
use serde::{Deserialize, Serialize};

/// The cause of a change of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PromiseCause {
    /// A job was overdue.
    Overdue,
    /// No daemon ran or it stalled, or the machine slept.
    Away,
    /// The machine shut down.
    Shutdown,
    /// The machine lost capacity.
    Capacity,
    /// A request was amended.
    Amended,
    /// The attempt was lost, and the job runs again.
    Lost,
    /// The policy of the queue made a mistake, and the queue was stopped.
    Stopped,
    /// The job was held.
    Held,
    /// The job was released.
    Released,
    /// A user requested another run of the job.
    Requeued,
    /// The job failed, and runs again.
    Retried,
    /// The request of the job was changed.
    Modified,
    /// An operator held, changed or cancelled the job of another user.
    Operator,
    /// The policy of the queue took the job off its resources, and starts it again.
    Displaced,
    /// The policy of the queue will never start the job.
    Refused,
}

impl PromiseCause {
    /// Returns whether the cause moves the plan of a run. The others begin another run.
    pub(crate) const fn moves_plan(self) -> bool {
        !matches!(
            self,
            PromiseCause::Held
                | PromiseCause::Released
                | PromiseCause::Requeued
                | PromiseCause::Retried
                | PromiseCause::Modified
                | PromiseCause::Lost
                | PromiseCause::Displaced
        )
    }

    /// Returns the cause as clients see it.
    pub(crate) const fn reason(self) -> PromiseChangeReason {
        match self {
            PromiseCause::Overdue => PromiseChangeReason::Overdue,
            PromiseCause::Away => PromiseChangeReason::Away,
            PromiseCause::Shutdown => PromiseChangeReason::Shutdown,
            PromiseCause::Capacity => PromiseChangeReason::Capacity,
            PromiseCause::Amended => PromiseChangeReason::Amended,
            PromiseCause::Lost => PromiseChangeReason::Lost,
            PromiseCause::Stopped => PromiseChangeReason::Stopped,
            PromiseCause::Held => PromiseChangeReason::Held,
            PromiseCause::Released => PromiseChangeReason::Released,
            PromiseCause::Requeued => PromiseChangeReason::Requeued,
            PromiseCause::Retried => PromiseChangeReason::Retried,
            PromiseCause::Modified => PromiseChangeReason::Modified,
            PromiseCause::Operator => PromiseChangeReason::Operator,
            PromiseCause::Displaced => PromiseChangeReason::Displaced,
            PromiseCause::Refused => PromiseChangeReason::Refused,
        }
    }
}

impl From<BreachCause> for PromiseCause {
    fn from(cause: BreachCause) -> PromiseCause {
        match cause {
            BreachCause::Overdue => PromiseCause::Overdue,
            BreachCause::Away => PromiseCause::Away,
            BreachCause::Capacity => PromiseCause::Capacity,
            BreachCause::Amended => PromiseCause::Amended,
        }
    }
}
