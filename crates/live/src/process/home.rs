//! What all threads of attempts share.

use miserly_api::model::{Failure, LostBy};
use miserly_engine::{Attempt, AttemptOutcome, Usage};
use miserly_launch::{FoundAttempt, LossCause};

use super::memory_guard::GuardWaker;
use super::{Executor, JobGroups, LauncherNotes, convert};
use crate::clock::BootClock;

/// The settings that all threads of attempts share.
#[derive(Clone, Debug)]
pub(super) struct Home {
    pub(super) executor: Executor,
    pub(super) clock: BootClock,
    pub(super) groups: JobGroups,
    pub(super) guard: GuardWaker,
    pub(super) notes: LauncherNotes,
}

impl Home {
    /// Returns the outcome of an attempt that cannot be run or found.
    pub(super) fn failed(&self, message: String) -> AttemptOutcome {
        AttemptOutcome::Failed { at: self.clock.now(), why: Failure::System, message }
    }
}

/// Returns the outcome of an attempt that is not alive.
pub(super) fn outcome(home: &Home, attempt: Attempt, found: FoundAttempt) -> AttemptOutcome {
    match found {
        FoundAttempt::Ended(end) => convert::outcome(&home.clock, attempt, &end),
        FoundAttempt::Lost(lost) if lost.cause == LossCause::Reboot => AttemptOutcome::Lost(LostBy::Reboot),
        FoundAttempt::Lost(_) => AttemptOutcome::Lost(LostBy::Shim),
        FoundAttempt::NeverRan | FoundAttempt::Alive(_) => AttemptOutcome::NeverRan,
    }
}

/// Returns the usage of an attempt that is not alive, as far as it is known. A lost one left its control group.
pub(super) fn used(home: &Home, attempt: Attempt, found: &FoundAttempt) -> Option<Usage> {
    match found {
        FoundAttempt::Ended(end) => convert::usage(end),
        FoundAttempt::Lost(lost) if lost.cause != LossCause::Reboot => home.groups.usage(attempt),
        FoundAttempt::Lost(_) | FoundAttempt::NeverRan | FoundAttempt::Alive(_) => None,
    }
}
