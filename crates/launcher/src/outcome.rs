//! The outcomes of attempts that are not alive.

use miserly_api::model::{Failure, LostBy};
use miserly_core::Time;
use miserly_engine::{Attempt, AttemptOutcome, Usage};
use miserly_launch::LossCause;

use crate::convert;
use crate::site::{Found, Host};

/// Returns the outcome of an attempt that cannot be run or found.
pub(crate) fn failed(host: &impl Host, message: String) -> AttemptOutcome {
    AttemptOutcome::Failed { at: host.clock().now(), why: Failure::System, message }
}

/// Returns the outcome of an attempt that is not alive.
pub(crate) fn outcome<H: Host>(host: &H, attempt: Attempt, found: &Found<H::Shim>) -> AttemptOutcome {
    match found {
        Found::Ended(end) => convert::outcome(host.clock(), attempt, end),
        Found::Lost(LossCause::Reboot) => AttemptOutcome::Lost(LostBy::Reboot),
        Found::Lost(LossCause::Kill) => AttemptOutcome::Lost(LostBy::Shim),
        Found::NeverRan | Found::Alive(_) => AttemptOutcome::NeverRan,
    }
}

/// Returns the instant at which the command of an attempt began, if it is known.
pub(crate) fn launched(host: &impl Host, attempt: Attempt) -> Option<Time> {
    host.clock().stored(&host.started(attempt)?)
}

/// Returns the usage of an attempt that is not alive, as far as it is known. A lost one left its control group.
pub(crate) fn used<H: Host>(host: &H, attempt: Attempt, found: &Found<H::Shim>) -> Option<Usage> {
    match found {
        Found::Ended(end) => convert::usage(end),
        Found::Lost(LossCause::Kill) => host.usage(attempt),
        Found::Lost(LossCause::Reboot) | Found::NeverRan | Found::Alive(_) => None,
    }
}
