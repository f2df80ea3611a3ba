//! Jobs that wait for other jobs or for an instant.

use std::collections::BTreeMap;

use miserly_core::Time;

use crate::{JobState, Record};

/// Tracks the jobs that wait for the end of other jobs or for an instant.
///
/// A *deferred* job is not in a ledger yet: its policy cannot represent the dependency. A queued job is
/// tracked while its earliest start in the ledger depends on jobs that have not finished.
///
/// Invariant: a deferred job is tracked until it is submitted to the ledger, held or finished.
#[derive(Clone, Debug, Default)]
pub(crate) struct DependencyTracker {
    jobs: BTreeMap<i64, Dependencies>,
}

/// The dependencies of one job.
#[derive(Clone, Debug)]
struct Dependencies {
    /// The jobs that have to finish first.
    after: Vec<i64>,
    /// The earliest start that the user set; the beginning of time if none was set.
    begin: Time,
    /// Whether the job is deferred.
    deferred: bool,
}

impl DependencyTracker {
    /// Returns a tracker of loaded jobs.
    pub(crate) fn new<'r>(records: impl Iterator<Item = &'r Record>) -> DependencyTracker {
        let mut tracker = DependencyTracker::default();
        let waits = |record: &&Record| is_deferred(record) || !record.after.is_empty();
        records.filter(waits).for_each(|record| tracker.track(record));
        tracker
    }

    /// Tracks a job as its record describes it.
    pub(crate) fn track(&mut self, record: &Record) {
        let begin = Time::from_ticks(record.begin.unwrap_or(i64::MIN));
        let dependencies = Dependencies { after: record.after.clone(), begin, deferred: is_deferred(record) };
        self.jobs.insert(record.number, dependencies);
    }

    /// Stops tracking a job.
    pub(crate) fn untrack(&mut self, job: i64) {
        self.jobs.remove(&job);
    }

    /// Returns the tracked jobs, by number.
    pub(crate) fn jobs(&self) -> Vec<i64> {
        self.jobs.keys().copied().collect()
    }

    /// Returns whether a job is deferred because of jobs that have not finished.
    pub(crate) fn is_blocked(&self, job: i64) -> bool {
        self.jobs.get(&job).is_some_and(|of| of.deferred && !of.after.is_empty())
    }

    /// Returns the earliest instant at which a deferred job is due.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.jobs.values().filter_map(Dependencies::due).min()
    }

    /// Returns the deferred jobs that are due by an instant, by number.
    pub(crate) fn due(&self, at: Time) -> Vec<i64> {
        let due = |of: &Dependencies| of.due().is_some_and(|due| due <= at);
        self.jobs.iter().filter(|(_, of)| due(of)).map(|(job, _)| *job).collect()
    }

    /// Removes finished jobs from all dependencies. Returns the remaining dependencies of each job for which they changed.
    pub(crate) fn remove_finished(&mut self, is_unfinished: impl Fn(i64) -> bool) -> Vec<(i64, Vec<i64>)> {
        let mut changed = vec![];
        for (job, of) in &mut self.jobs {
            let before = of.after.len();
            of.after.retain(|other| is_unfinished(*other));
            if of.after.len() != before {
                changed.push((*job, of.after.clone()));
            }
        }
        changed
    }
}

impl Dependencies {
    /// Returns the instant at which the job may leave its deferral, if no other job blocks it.
    fn due(&self) -> Option<Time> {
        (self.deferred && self.after.is_empty()).then_some(self.begin)
    }
}

fn is_deferred(record: &Record) -> bool {
    record.state == JobState::Deferred
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn record(number: i64, state: JobState, begin: Option<i64>, after: &[i64]) -> Record {
        Record { begin, after: after.to_vec(), ..Record::new(number, state, Arc::default()) }
    }

    fn deferred(number: i64, begin: Option<i64>, after: &[i64]) -> Record {
        record(number, JobState::Deferred, begin, after)
    }

    fn tracker(records: &[Record]) -> DependencyTracker {
        DependencyTracker::new(records.iter())
    }

    #[test]
    fn a_deferred_job_is_due_at_its_begin() {
        let tracker = tracker(&[deferred(1, Some(50), &[]), deferred(2, Some(30), &[])]);
        assert_eq!(tracker.next_due(), Some(Time::from_ticks(30)));
        assert_eq!(tracker.due(Time::from_ticks(29)), [0; 0]);
        assert_eq!(tracker.due(Time::from_ticks(30)), [2]);
        assert_eq!(tracker.due(Time::from_ticks(50)), [1, 2]);
    }

    #[test]
    fn a_blocked_job_is_due_once_all_its_dependencies_have_finished() {
        let mut tracker = tracker(&[deferred(3, None, &[1, 2])]);
        assert!(tracker.is_blocked(3) && tracker.next_due().is_none());
        assert_eq!(tracker.remove_finished(|job| job == 2), [(3, vec![2])]);
        assert_eq!(tracker.remove_finished(|job| job == 2), [], "reported once");
        assert_eq!(tracker.remove_finished(|_| false), [(3, vec![])]);
        assert_eq!(tracker.due(Time::from_ticks(0)), [3]);
    }

    #[test]
    fn queued_and_held_jobs_are_never_due() {
        let held = record(1, JobState::Held, None, &[9]);
        let queued = record(2, JobState::Queued, None, &[9]);
        let mut tracker = tracker(&[held, queued, record(3, JobState::Queued, None, &[])]);
        assert_eq!(tracker.jobs(), [1, 2], "the third depends on nothing");
        tracker.remove_finished(|_| false);
        assert_eq!((tracker.next_due(), tracker.is_blocked(2)), (None, false));
    }

    #[test]
    fn an_untracked_job_is_forgotten() {
        let mut tracker = tracker(&[deferred(1, None, &[])]);
        tracker.untrack(1);
        assert_eq!((tracker.next_due(), tracker.jobs()), (None, vec![]));
    }
}
