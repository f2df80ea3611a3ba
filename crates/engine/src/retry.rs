//! Commits that are tried again.

use miserly_core::{Span, Time};

use crate::{Attempt, AttemptOutcome};

/// The delay until a failed commit is tried again.
const DELAY: Span = Span::from_ticks(1_000_000);

/// The facts of a commit that failed, and the instant at which they are applied again.
///
/// The ends of attempts are facts. A rollback drops all other inputs, and their requesters are informed.
#[derive(Debug, Default)]
pub(crate) struct CommitRetry {
    facts: Vec<(Attempt, AttemptOutcome)>,
    at: Option<Time>,
}

impl CommitRetry {
    /// Returns the instant of the next try.
    pub(crate) const fn at(&self) -> Option<Time> {
        self.at
    }

    /// Takes the facts to apply again.
    pub(crate) fn take_facts(&mut self) -> Vec<(Attempt, AttemptOutcome)> {
        std::mem::take(&mut self.facts)
    }

    /// Takes the facts to apply again in a batch that begins now.
    pub(crate) fn begin(&mut self) -> Vec<(Attempt, AttemptOutcome)> {
        self.at = None;
        self.take_facts()
    }

    /// Schedules another try.
    pub(crate) fn schedule(&mut self, now: Time, facts: Vec<(Attempt, AttemptOutcome)>) {
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
        let fact = (Attempt { job: 1, nth: 1 }, AttemptOutcome::NeverRan);
        retry.schedule(Time::from_ticks(5), vec![fact.clone()]);
        assert_eq!(retry.at(), Some(Time::from_ticks(5) + DELAY));
        assert_eq!(retry.begin(), [fact]);
        assert_eq!((retry.at(), retry.begin()), (None, vec![]));
    }
}
