//! Jobs that wait for other jobs, for an instant, or for a place in their array.
//!
//! Of an array with a limit, no more jobs than the limit are in a ledger: these have a *place*. So no more can run at the
//! same time, and no promise depends on the limit. When a job with a place has ended, the deferred job with the lowest number
//! takes the place.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::Time;

use crate::record::ArrayLimit;
use crate::{JobState, Record};

/// Tracks the jobs that wait for the end of other jobs or for an instant.
///
/// A *deferred* job is not in a ledger yet: its policy cannot represent the dependency. A queued job is
/// tracked while its earliest start in the ledger depends on jobs that have not finished.
///
/// A held job is tracked while it waits for others: their ends may mean that it can never run.
///
/// Invariant: a deferred job is tracked until it is submitted to the ledger, held or finished.
#[derive(Clone, Debug, Default)]
pub(crate) struct DependencyTracker {
    jobs: BTreeMap<i64, Dependencies>,
    /// The tracked jobs that wait for a job, by that job.
    dependents: BTreeMap<i64, BTreeSet<i64>>,
    /// The number of jobs that the tracked jobs of each user wait for, counted for each of them.
    waits: BTreeMap<u32, usize>,
    /// The jobs with a place, by their array. Arrays without a limit are not here.
    places: BTreeMap<i64, BTreeSet<i64>>,
}

/// The dependencies of one job.
#[derive(Clone, Debug)]
struct Dependencies {
    /// The user, by number.
    uid: u32,
    /// The jobs that have to finish first.
    after: Vec<i64>,
    /// The earliest start that the user set; the beginning of time if none was set.
    begin: Time,
    /// Whether the job is deferred.
    deferred: bool,
    /// The limit of its array.
    limit: Option<ArrayLimit>,
}

impl DependencyTracker {
    /// Returns a tracker of loaded jobs.
    pub(crate) fn new<'r>(records: impl Iterator<Item = &'r Record>) -> DependencyTracker {
        let mut tracker = DependencyTracker::default();
        for record in records {
            if is_deferred(record) || !record.after.is_empty() {
                tracker.track(record);
            }
            if record.is_in_ledger() {
                tracker.take_place(record);
            }
        }
        tracker
    }

    /// Tracks a job as its record describes it.
    pub(crate) fn track(&mut self, record: &Record) {
        self.untrack(record.number);
        for other in &record.after {
            self.dependents.entry(*other).or_default().insert(record.number);
        }
        let begin = Time::from_ticks(record.begin.unwrap_or(i64::MIN));
        *self.waits.entry(record.uid).or_default() += record.after.len();
        let dependencies = Dependencies {
            uid: record.uid,
            after: record.after.clone(),
            begin,
            deferred: is_deferred(record),
            limit: record.array_limit(),
        };
        self.jobs.insert(record.number, dependencies);
    }

    /// Stops tracking a job.
    pub(crate) fn untrack(&mut self, job: i64) {
        let Some(of) = self.jobs.remove(&job) else { return };
        self.count_out(of.uid, of.after.len());
        for other in of.after {
            if let Some(jobs) = self.dependents.get_mut(&other) {
                jobs.remove(&job);
                if jobs.is_empty() {
                    self.dependents.remove(&other);
                }
            }
        }
    }

    /// Returns whether a job may enter a ledger as far as its array is concerned.
    pub(crate) fn has_place_for(&self, record: &Record) -> bool {
        record.array_limit().is_none_or(|limit| self.free_places(limit) > 0)
    }

    /// Gives a place to a job that enters a ledger.
    pub(crate) fn take_place(&mut self, record: &Record) {
        if let Some(ArrayLimit { array, .. }) = record.array_limit() {
            self.places.entry(array).or_default().insert(record.number);
        }
    }

    /// Takes the place from a job that is in no ledger any more.
    pub(crate) fn leave_place(&mut self, record: &Record) {
        let Some(ArrayLimit { array, .. }) = record.array_limit() else { return };
        if let Some(jobs) = self.places.get_mut(&array) {
            jobs.remove(&record.number);
            if jobs.is_empty() {
                self.places.remove(&array);
            }
        }
    }

    fn free_places(&self, limit: ArrayLimit) -> usize {
        let taken = self.places.get(&limit.array).map_or(0, BTreeSet::len);
        usize::try_from(limit.limit).unwrap_or(usize::MAX).saturating_sub(taken)
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
        let has_place = |of: &&Dependencies| of.limit.is_none_or(|limit| self.free_places(limit) > 0);
        self.jobs.values().filter(has_place).filter_map(Dependencies::due).min()
    }

    /// Returns the deferred jobs that are due by an instant, by number; of an array, no more than it has free places.
    pub(crate) fn due(&self, at: Time) -> Vec<i64> {
        let due = |of: &Dependencies| of.due().is_some_and(|due| due <= at);
        let mut free: BTreeMap<i64, usize> = BTreeMap::new();
        let mut takes_place = |of: &Dependencies| {
            let Some(limit) = of.limit else { return true };
            let left = free.entry(limit.array).or_insert_with(|| self.free_places(limit));
            let has_place = *left > 0;
            *left -= usize::from(has_place);
            has_place
        };
        self.jobs.iter().filter(|(_, of)| due(of) && takes_place(of)).map(|(job, _)| *job).collect()
    }

    /// Returns the jobs that wait for a job, by number.
    pub(crate) fn dependents(&self, job: i64) -> impl Iterator<Item = i64> {
        self.dependents.get(&job).into_iter().flatten().copied()
    }

    /// Returns the number of jobs that the tracked jobs of a user wait for, counted for each of them.
    pub(crate) fn waits(&self, uid: u32) -> usize {
        self.waits.get(&uid).copied().unwrap_or_default()
    }

    /// Returns the finished jobs that others wait for, by number.
    pub(crate) fn finished(&self, is_unfinished: impl Fn(i64) -> bool) -> Vec<i64> {
        self.dependents.keys().copied().filter(|other| !is_unfinished(*other)).collect()
    }

    /// Removes finished jobs from all dependencies. Returns each job that waited for some of them, with these.
    pub(crate) fn remove_finished(&mut self, finished: &[i64]) -> BTreeMap<i64, BTreeSet<i64>> {
        let mut changed: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        for other in finished {
            for job in self.dependents.remove(other).unwrap_or_default() {
                changed.entry(job).or_default().insert(*other);
            }
        }
        for (job, others) in &changed {
            let Some(of) = self.jobs.get_mut(job) else { continue };
            let before = of.after.len();
            of.after.retain(|after| !others.contains(after));
            let (uid, removed) = (of.uid, before - of.after.len());
            self.count_out(uid, removed);
        }
        changed
    }

    fn count_out(&mut self, uid: u32, removed: usize) {
        let Some(waits) = self.waits.get_mut(&uid) else { return };
        *waits -= removed;
        if *waits == 0 {
            self.waits.remove(&uid);
        }
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
        assert_eq!((tracker.waits(0), tracker.finished(|job| job == 2)), (2, vec![1]));
        assert_eq!(tracker.remove_finished(&[1]), [(3, [1].into())].into());
        assert_eq!(tracker.remove_finished(&[1]), BTreeMap::new(), "reported once");
        assert_eq!(tracker.dependents(2).collect::<Vec<_>>(), [3]);
        assert_eq!(tracker.remove_finished(&[2]), [(3, [2].into())].into());
        assert_eq!((tracker.waits(0), tracker.dependents(2).count()), (0, 0));
        assert_eq!(tracker.due(Time::from_ticks(0)), [3]);
    }

    #[test]
    fn queued_and_held_jobs_are_never_due() {
        let held = record(1, JobState::Held, None, &[9]);
        let queued = record(2, JobState::Queued, None, &[9]);
        let mut tracker = tracker(&[held, queued, record(3, JobState::Queued, None, &[])]);
        assert_eq!(tracker.jobs(), [1, 2], "the third depends on nothing");
        tracker.remove_finished(&[9]);
        assert_eq!((tracker.next_due(), tracker.is_blocked(2)), (None, false));
    }

    #[test]
    fn jobs_of_an_array_take_free_places_by_number() {
        let submission = miserly_api::model::Submission {
            array: Some(miserly_api::model::Array {
                limit: Some(2),
                ..miserly_api::model::Array::range(0, 3, 1)
            }),
            ..miserly_api::model::Submission::default()
        };
        let submission = Arc::new(submission);
        let of_array = |number: i64, state: JobState| Record {
            array: Some(crate::ArrayMember { first: 1, index: 0 }),
            ..Record::new(number, state, Arc::clone(&submission))
        };
        let waits = [JobState::Queued, JobState::Deferred, JobState::Deferred, JobState::Deferred];
        let records: Vec<Record> = (1..).zip(waits).map(|(number, state)| of_array(number, state)).collect();
        let mut tracker = tracker(&records);
        let now = Time::from_ticks(0);
        assert_eq!(tracker.due(now), [2]);
        tracker.untrack(2);
        tracker.take_place(&records[1]);
        assert!(tracker.due(now).is_empty() && !tracker.has_place_for(&records[2]));
        assert_eq!(tracker.next_due(), None);
        tracker.leave_place(&records[0]);
        assert_eq!(tracker.due(now), [3]);
        tracker.leave_place(&records[1]);
        assert_eq!(tracker.due(now), [3, 4]);
        tracker.leave_place(&records[1]);
        assert_eq!(tracker.due(now), [3, 4], "a place is left once");
    }

    #[test]
    fn an_untracked_job_is_forgotten() {
        let mut tracker = tracker(&[deferred(1, None, &[8, 9])]);
        assert_eq!(tracker.waits(0), 2);
        tracker.untrack(1);
        assert_eq!(tracker.waits(0), 0);
        assert_eq!((tracker.next_due(), tracker.jobs()), (None, vec![]));
    }
}
