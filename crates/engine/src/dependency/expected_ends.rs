//! The expected ends of jobs, and the earliest starts of jobs that wait for them.

use miserly_api::model::When;
use miserly_core::{Entry, Expected, State, Time};

use crate::{Queue, Record, Setup};

/// A schedule that has the ends of jobs: that of the engine, or of a snapshot.
pub(crate) trait ExpectedEnds {
    /// Returns the setup.
    fn setup(&self) -> &Setup;

    /// Returns whether a job has not finished, also if it has no usable record.
    fn is_unfinished(&self, number: i64) -> bool;

    /// Returns the latest end of a running job, whatever its prediction is. It is unknown for an overdue job.
    fn expected_end(&self, number: i64) -> Option<Time>;

    /// Returns the latest end of a waiting job with a promise.
    fn promised_end(&self, number: i64) -> Option<Time>;

    /// Returns whether the queue's policy takes a job into account now, although the job may start only later.
    fn enters_at_once(&self, record: &Record, at: Time) -> bool {
        let due = record.own_begin().is_some_and(|begin| begin <= at || self.knows_begin(record));
        due || (!record.after.is_empty() && self.is_begin_known(record, at))
    }

    /// Returns whether the policy supports earliest starts and the ends of all dependencies are known.
    ///
    /// A job that would take a place of its array before its dependencies have ended is none of these, if others of the array
    /// may have ended dependencies earlier.
    fn is_begin_known(&self, record: &Record, at: Time) -> bool {
        self.knows_begin(record)
            && !record.keeps_place_free()
            && record.after.iter().all(|other| self.latest_end(*other, at).is_some())
    }

    /// Returns whether the policy of a job's queue supports earliest starts.
    fn knows_begin(&self, record: &Record) -> bool {
        self.setup().queue(&record.queue).is_some_and(Queue::knows_begin)
    }

    /// Returns the earliest start of a job: the user's, or the latest end of its dependencies.
    ///
    /// It is [`Time::MAX`] while the end of a dependency is unknown.
    fn earliest_begin(&self, record: &Record, at: Time) -> Option<Time> {
        let unfinished = record.after.iter().filter(|other| self.is_unfinished(**other));
        let ends = unfinished.map(|other| self.latest_end(*other, at).unwrap_or(Time::MAX));
        ends.chain(record.begin).max()
    }

    /// Returns the latest end of an unfinished job, if it is known. The end of an overdue job is unknown.
    fn latest_end(&self, number: i64, at: Time) -> Option<Time> {
        let end = self.expected_end(number).or_else(|| self.promised_end(number));
        end.filter(|end| *end > at && *end < Time::MAX)
    }
}

/// Returns the latest end of a waiting job with a promise.
pub(crate) fn promised_end(entry: &Entry) -> Option<Time> {
    let waits = entry.state == State::Waiting;
    entry.promise.filter(|_| waits).map(|promise| promise.best + entry.request.planned())
}

/// Returns the latest end of a running job: that of its time limit. It is unknown for an overdue job.
pub(crate) fn limit_end(entry: &Entry) -> Option<Time> {
    let planned = expected_end(entry)?;
    let limit = || entry.progress.at + entry.left(entry.progress.at, entry.working());
    Some(if entry.prediction.is_some() { limit() } else { planned })
}

/// Returns the instant at which a running job is planned to end: its latest end, or that of its prediction.
pub(crate) fn expected_end(entry: &Entry) -> Option<Time> {
    match entry.state {
        State::Running { expected: Expected::At(end), .. } => Some(end),
        _ => None,
    }
}

/// Returns the instant since which a job is overdue.
pub(crate) fn overdue_since(entry: &Entry) -> Option<Time> {
    match entry.state {
        State::Running { expected: Expected::Overdue { since }, .. } => Some(since),
        _ => None,
    }
}

/// Returns the rank of a job among the ends of one instant: its start, then its admission.
pub(crate) fn start_rank(entry: &Entry) -> (Time, u64) {
    match entry.state {
        State::Running { start, .. } | State::Suspended { start, .. } => (start, entry.admitted),
        State::Waiting => (Time::MAX, entry.admitted),
    }
}

impl Record {
    /// Returns whether the job leaves the places of its array to others until its own dependencies have ended.
    fn keeps_place_free(&self) -> bool {
        let differ = self.submission.conditions.iter().any(|condition| condition.when == When::EachOk);
        differ && !self.after.is_empty() && self.array_limit().is_some()
    }

    /// Returns the earliest start of a job that depends on no other job. Without `--begin` it is the beginning of time.
    fn own_begin(&self) -> Option<Time> {
        self.after.is_empty().then(|| self.begin.unwrap_or(Time::from_ticks(i64::MIN)))
    }
}
