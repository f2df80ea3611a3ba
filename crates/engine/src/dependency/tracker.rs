//! Jobs that wait for other jobs, for an instant, or for a place under the limits of their array and of their user.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use miserly_core::Time;

use crate::limits::lines::Lines;
use crate::limits::places::{Distribution, PlaceRequest, Places, Sums};
use crate::{JobState, Record, UserLimits};

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
    /// The latest ends of these jobs at the last look; [`Time::MAX`] if unknown.
    ends: BTreeMap<i64, Time>,
    /// Those of these jobs whose plans have changed since then.
    changed: BTreeSet<i64>,
    /// The tracked jobs that have to be looked at, whatever those ends are.
    unseen: BTreeSet<i64>,
    /// Whether earliest starts do not agree with ends yet.
    unsettled: bool,
    /// The number of jobs that the tracked jobs of each user wait for, counted for each of them.
    waits: BTreeMap<u32, usize>,
    /// The limits of users.
    limits: Arc<UserLimits>,
    /// The jobs with a place.
    places: Places,
    /// The deferred jobs that wait for no other job.
    lines: Lines,
    /// Those of them for which their pools are too small now. They are in no line.
    parked: BTreeSet<i64>,
}

/// The dependencies of one job.
#[derive(Clone, Debug)]
struct Dependencies {
    /// The user, by number.
    uid: u32,
    /// The jobs that have to finish first.
    after: Vec<i64>,
    /// The earliest start and the request for a place of a deferred job, until these jobs have finished.
    deferral: Option<(Time, PlaceRequest)>,
}

impl DependencyTracker {
    /// Returns a tracker of loaded jobs under these limits.
    pub(crate) fn new<'r>(
        limits: &UserLimits,
        records: impl Iterator<Item = &'r Record>,
    ) -> DependencyTracker {
        let mut tracker =
            DependencyTracker { limits: Arc::new(limits.clone()), ..DependencyTracker::default() };
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
        *self.waits.entry(record.uid).or_default() += record.after.len();
        let mut deferral = is_deferred(record).then(|| (record.begin(), self.limits.place_request(record)));
        if record.after.is_empty()
            && let Some((begin, request)) = deferral.take()
        {
            self.lines.add(record.number, begin, request);
        }
        let dependencies = Dependencies { uid: record.uid, after: record.after.clone(), deferral };
        self.jobs.insert(record.number, dependencies);
        self.unseen.insert(record.number);
    }

    /// Stops tracking a job.
    pub(crate) fn untrack(&mut self, job: i64) {
        let Some(of) = self.jobs.remove(&job) else { return };
        self.lines.remove(job);
        self.parked.remove(&job);
        self.unseen.remove(&job);
        self.count_out(of.uid, of.after.len());
        for other in of.after {
            if let Some(jobs) = self.dependents.get_mut(&other) {
                jobs.remove(&job);
                if jobs.is_empty() {
                    self.dependents.remove(&other);
                    self.ends.remove(&other);
                }
            }
        }
    }

    /// Returns whether a job may enter a ledger as far as limits of places are concerned.
    ///
    /// It passes no job with a lower number that waits for a place. A job with a place keeps it if there is room for its further
    /// processors.
    pub(crate) fn has_place_for(&self, record: &Record) -> bool {
        let request = self.limits.place_request(record);
        if request.is_unlimited() {
            return true;
        }
        if let Some(before) = self.places.size_of(record.number) {
            return self.places.has_room_for_more(&request, before);
        }
        let mut places = Distribution::new(self.places.sums());
        self.lines.distribute(&mut places, record.number, usize::MAX);
        places.admit(&request)
    }

    /// Returns those of some jobs, by number, that would have places if all of them entered a ledger.
    pub(crate) fn with_places<'r>(&self, records: &'r [Record]) -> Vec<&'r Record> {
        let mut places = Distribution::new(self.places.sums());
        let first = records.first().map_or(0, |record| record.number);
        self.lines.distribute(&mut places, first, usize::MAX);
        let has_place = |record: &&Record| places.admit(&self.limits.place_request(record));
        records.iter().filter(has_place).collect()
    }

    /// Gives a place to a job that enters a ledger, or that has other processors there.
    pub(crate) fn take_place(&mut self, record: &Record) {
        self.places.take(&self.limits, record);
    }

    /// Takes the place from a job that is in no ledger any more.
    pub(crate) fn leave_place(&mut self, job: i64) {
        self.places.leave(job);
    }

    /// Returns the places that are taken.
    pub(crate) fn taken(&self) -> &Arc<Sums> {
        self.places.sums()
    }

    /// Returns the tracked jobs, by number.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = i64> {
        self.jobs.keys().copied()
    }

    /// Returns the number of tracked jobs.
    pub(crate) fn count(&self) -> usize {
        self.jobs.len()
    }

    /// Returns whether a job is deferred because of jobs that have not finished.
    pub(crate) fn is_blocked(&self, job: i64) -> bool {
        self.jobs.get(&job).is_some_and(|of| of.deferral.is_some())
    }

    /// Returns an instant at which a deferred job is due: the first one if one is due now, or else the next earliest
    /// start of such a job, at which it may find no place.
    pub(crate) fn next_due(&self) -> Option<Time> {
        let mut places = Distribution::new(self.places.sums());
        let is_due = !self.lines.distribute(&mut places, i64::MAX, 1).is_empty();
        is_due.then_some(Time::ZERO).or_else(|| self.lines.next_begin())
    }

    /// Returns the deferred jobs that are due at an instant and have a place, by number. Instants never decrease.
    pub(crate) fn due(&mut self, at: Time) -> Vec<i64> {
        self.lines.advance(at);
        self.lines.distribute(&mut Distribution::new(self.places.sums()), i64::MAX, usize::MAX)
    }

    /// Takes a deferred job out of its line until its pool has grown.
    pub(crate) fn park(&mut self, job: i64) {
        self.lines.remove(job);
        self.parked.insert(job);
    }

    /// Returns the jobs that wait until their pools have grown.
    pub(crate) fn take_parked(&mut self) -> BTreeSet<i64> {
        std::mem::take(&mut self.parked)
    }

    /// Returns the jobs that others wait for, by number.
    pub(crate) fn required(&self) -> impl Iterator<Item = i64> {
        self.dependents.keys().copied()
    }

    /// Notes that the plan of a job has changed.
    pub(crate) fn note_change(&mut self, job: i64) {
        if self.dependents.contains_key(&job) {
            self.changed.insert(job);
        }
        self.look_again(job);
    }

    /// Lets the next look include a job, if it is tracked, whatever the ends are that it waits for.
    pub(crate) fn look_again(&mut self, job: i64) {
        if self.jobs.contains_key(&job) {
            self.unseen.insert(job);
        }
    }

    /// Returns the tracked jobs that have to be looked at, whatever the ends are that they wait for.
    pub(crate) fn take_unseen(&mut self) -> BTreeSet<i64> {
        std::mem::take(&mut self.unseen)
    }

    /// Notes whether earliest starts agree with ends.
    pub(crate) fn set_settled(&mut self, settled: bool) {
        self.unsettled = !settled;
    }

    /// Returns whether earliest starts do not agree with ends yet.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.unsettled
    }

    /// Sets the latest end of a job that others wait for; [`Time::MAX`] if unknown. Returns the one of the last look.
    pub(crate) fn set_end(&mut self, job: i64, end: Time) -> Option<Time> {
        self.dependents.contains_key(&job).then(|| self.ends.insert(job, end)).flatten()
    }

    /// Returns the jobs that others wait for and whose plans have changed since the last look.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<i64> {
        std::mem::take(&mut self.changed)
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
            self.ends.remove(other);
            for job in self.dependents.remove(other).unwrap_or_default() {
                changed.entry(job).or_default().insert(*other);
            }
        }
        for (job, others) in &changed {
            let Some(of) = self.jobs.get_mut(job) else { continue };
            let before = of.after.len();
            of.after.retain(|after| !others.contains(after));
            let (uid, removed) = (of.uid, before - of.after.len());
            if of.after.is_empty()
                && let Some((begin, request)) = of.deferral.take()
            {
                self.lines.add(*job, begin, request);
            }
            self.count_out(uid, removed);
            self.unseen.insert(*job);
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

impl Record {
    /// Returns the earliest start that the user set; the beginning of time if none was set.
    pub(crate) fn begin(&self) -> Time {
        self.begin.unwrap_or(Time::from_ticks(i64::MIN))
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
        Record {
            begin: begin.map(Time::from_ticks),
            after: after.to_vec(),
            ..Record::new(number, state, Arc::default())
        }
    }

    fn deferred(number: i64, begin: Option<i64>, after: &[i64]) -> Record {
        record(number, JobState::Deferred, begin, after)
    }

    fn tracker(records: &[Record]) -> DependencyTracker {
        DependencyTracker::new(&UserLimits::default(), records.iter())
    }

    #[test]
    fn a_deferred_job_is_due_at_its_begin() {
        let mut tracker = tracker(&[deferred(1, Some(50), &[]), deferred(2, Some(30), &[])]);
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
        assert_eq!(tracker.jobs().collect::<Vec<_>>(), [1, 2], "the third depends on nothing");
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
        tracker.leave_place(1);
        assert_eq!(tracker.due(now), [3]);
        tracker.leave_place(2);
        assert_eq!(tracker.due(now), [3, 4]);
        tracker.leave_place(2);
        assert_eq!(tracker.due(now), [3, 4], "a place is left once");
    }

    #[test]
    fn an_untracked_job_is_forgotten() {
        let mut tracker = tracker(&[deferred(1, None, &[8, 9])]);
        assert_eq!(tracker.waits(0), 2);
        tracker.untrack(1);
        assert_eq!(tracker.waits(0), 0);
        assert_eq!((tracker.next_due(), tracker.count()), (None, 0));
    }
}
