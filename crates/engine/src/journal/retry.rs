//! Commits that are tried again.

use miserly_api::model::OverdueCause;
use miserly_core::{Span, Time};

use crate::{Attempt, AttemptOutcome, BegunWindow, Usage};

/// The delay until a failed commit is tried again.
const DELAY: Span = Span::from_ticks(1_000_000);

/// The inputs of a batch that are facts. They are true whether or not they can be stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    /// The attempts that were launched, and when.
    pub(crate) launches: Vec<(Attempt, Time)>,
    /// The attempts that have ended.
    pub(crate) ends: Vec<(Attempt, AttemptOutcome)>,
    /// The resources that they used, as far as they are known.
    pub(crate) used: Vec<(Attempt, Usage)>,
    /// The attempts whose epilogs failed, and why.
    pub(crate) epilogs: Vec<(Attempt, String)>,
    /// The windows that shims began by themselves.
    pub(crate) begun: Vec<BegunWindow>,
    /// The attempts that do not end although they shall.
    pub(crate) overdue: Vec<(Attempt, OverdueCause)>,
    /// The attempts that are idle, and since when, or that are active again.
    pub(crate) idle: Vec<(Attempt, Option<Time>)>,
    /// The attempts that lost processors or the sole use of them, and how.
    pub(crate) losses: Vec<(Attempt, String)>,
    /// The processors that are online, by number, if that changed.
    pub(crate) online: Option<Vec<u32>>,
}

/// The facts of a commit that failed, and the instant at which they are applied again.
///
/// A rollback drops all other inputs, and their requesters are informed.
#[derive(Debug, Default)]
pub(crate) struct CommitRetry {
    facts: Facts,
    at: Option<Time>,
}

impl CommitRetry {
    /// Returns the instant of the next try.
    pub(crate) const fn at(&self) -> Option<Time> {
        self.at
    }

    /// Takes the facts to apply again.
    pub(crate) fn take_facts(&mut self) -> Facts {
        std::mem::take(&mut self.facts)
    }

    /// Takes the facts to apply again in a batch that begins now, if the last commit failed.
    pub(crate) fn begin(&mut self) -> Option<Facts> {
        self.at.take().map(|_| self.take_facts())
    }

    /// Schedules another try.
    pub(crate) fn schedule(&mut self, now: Time, facts: Facts) {
        self.facts = facts;
        self.at = Some(now + DELAY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_kept_until_the_next_batch_begins() {
        let mut retry = CommitRetry::default();
        assert_eq!(retry.begin(), None);
        let ends = vec![(Attempt { job: 1, nth: 1 }, AttemptOutcome::NeverRan)];
        let facts = Facts { ends, ..Facts::default() };
        retry.schedule(Time::from_ticks(5), facts.clone());
        assert_eq!(retry.at(), Some(Time::from_ticks(5) + DELAY));
        assert_eq!(retry.begin(), Some(facts));
        assert_eq!((retry.at(), retry.begin()), (None, None));
    }
}
