//! The instants at which the engine looks at jobs.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::Time;

/// One instant for each of some jobs, earliest first. It is in no stored state: it follows from the records.
#[derive(Debug, Default)]
pub(crate) struct JobInstants {
    at: BTreeSet<(Time, i64)>,
    of: BTreeMap<i64, Time>,
}

impl JobInstants {
    /// Sets the instant of a job, or removes it.
    pub(crate) fn set(&mut self, job: i64, at: Option<Time>) {
        if let Some(before) = self.of.remove(&job) {
            self.at.remove(&(before, job));
        }
        if let Some(at) = at {
            self.of.insert(job, at);
            self.at.insert((at, job));
        }
    }

    /// Returns the earliest instant.
    pub(crate) fn next(&self) -> Option<Time> {
        self.at.first().map(|(at, _)| *at)
    }

    /// Removes the instants until `at`, and returns their jobs in order.
    pub(crate) fn due(&mut self, at: Time) -> Vec<i64> {
        let mut due = vec![];
        while let Some((_, job)) = self.at.first().copied().filter(|(first, _)| *first <= at) {
            self.set(job, None);
            due.push(job);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_one_instant_and_is_due_once() {
        let at = Time::from_ticks;
        let mut instants = JobInstants::default();
        for (job, instant) in [(1, 9), (2, 5), (3, 7), (1, 6)] {
            instants.set(job, Some(at(instant)));
        }
        instants.set(3, None);
        assert_eq!(instants.next(), Some(at(5)));
        assert_eq!((instants.due(at(4)), instants.due(at(6))), (vec![], vec![2, 1]));
        assert_eq!((instants.next(), instants.due(at(100))), (None, vec![]));
    }
}
