//! The judgements of promises since the state was created: their numbers, and the last promises that were not kept.

use std::collections::VecDeque;

use jiff::Timestamp;
use jiff::fmt::serde::timestamp::microsecond;
use miserly_api::model::{Judgement, MissedPromise, PromiseChangeReason};
use miserly_core::{Span, Time};
use miserly_saved::ticks;
use serde::{Deserialize, Serialize};

use crate::journal::to_json;
use crate::promise::log::{GivenPromise, Verdict};
use crate::{Journal, JournalError, Now};

/// The named value with the numbers of promises.
const COUNTS: &str = "counts";

/// The named value with the last promises that were not kept.
const MISSED: &str = "missed_promises";

/// The most promises in the list of those that were not kept.
const LISTED_MOST: usize = 50;

/// The numbers of promises since the state was created.
///
/// `given` = `kept` + `late` + `lost` + `withdrawn` + `earlier` + the open ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct PromiseCounts {
    /// Promises that were given: at most one to each run of a job.
    #[serde(rename = "promises")]
    pub(crate) given: u64,
    /// Those whose jobs started in time.
    #[serde(default)]
    pub(crate) kept: u64,
    /// Those whose jobs started later.
    pub(crate) late: u64,
    /// Those whose jobs ended without a start, against the wish of their users.
    #[serde(default)]
    pub(crate) lost: u64,
    /// Those whose users cancelled, held or changed their jobs.
    #[serde(default)]
    pub(crate) withdrawn: u64,
    /// Those that an earlier version counted and did not judge.
    #[serde(default)]
    pub(crate) earlier: u64,
    /// The jobs that an earlier version counted as broken. The number never changes.
    #[serde(default)]
    pub(crate) broken: u64,
    /// Whether the promises of an earlier version are in `earlier`.
    #[serde(default)]
    classified: bool,
}

impl PromiseCounts {
    /// Returns the number of promises that are not judged yet.
    pub(crate) const fn open(&self) -> u64 {
        self.given.saturating_sub(self.kept + self.late + self.lost + self.withdrawn + self.earlier)
    }

    /// Counts the promises of an earlier version that it did not judge. `open` promises of unfinished jobs are left.
    fn classify(&mut self, open: u64) {
        if self.classified {
            return;
        }
        self.earlier = 0;
        let unjudged = self.open();
        self.earlier = unjudged.saturating_sub(open);
        // An earlier version counted the job, and not each of its runs.
        self.given += open.saturating_sub(unjudged);
        self.classified = true;
    }

    fn number(&mut self, verdict: Verdict) -> &mut u64 {
        match verdict {
            Verdict::Kept => &mut self.kept,
            Verdict::Late { .. } => &mut self.late,
            Verdict::Lost { .. } => &mut self.lost,
            Verdict::Withdrawn => &mut self.withdrawn,
        }
    }
}

/// Returns the stored counts of a state that was recovered. The next daemon counts anew which promises are open.
///
/// Returns `None` if the text holds no counts.
pub fn unclassified(text: &str) -> Option<String> {
    let counts: PromiseCounts = serde_json::from_str(text).ok()?;
    to_json(&PromiseCounts { classified: false, ..counts }).ok()
}

/// A promise that was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Missed {
    job: i64,
    /// The wall time of the judgement.
    #[serde(with = "microsecond::required")]
    at: Timestamp,
    /// The latest start.
    #[serde(with = "ticks")]
    latest: Time,
    /// The delay of the start; `None` if the job never started.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "ticks::optional")]
    late: Option<Span>,
    cause: PromiseChangeReason,
}

/// The judgements of promises.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PromiseBook {
    counts: PromiseCounts,
    missed: VecDeque<Missed>,
    /// Whether the list differs from the stored one.
    changed: bool,
}

impl PromiseBook {
    /// Returns the stored judgements.
    pub(crate) fn load(journal: &impl Journal) -> Result<PromiseBook, JournalError> {
        let counts = journal.value(COUNTS)?.and_then(|text| serde_json::from_str(&text).ok());
        let missed = journal.value(MISSED)?.and_then(|text| serde_json::from_str(&text).ok());
        Ok(PromiseBook {
            counts: counts.unwrap_or_default(),
            missed: missed.unwrap_or_default(),
            changed: false,
        })
    }

    /// Returns the numbers of promises.
    pub(crate) const fn counts(&self) -> &PromiseCounts {
        &self.counts
    }

    /// Takes the named values: the counts, and the list of promises that were not kept if it has changed.
    pub(crate) fn take_changed(&mut self) -> Result<Vec<(String, String)>, JournalError> {
        let mut entries = vec![(COUNTS.to_owned(), to_json(&self.counts)?)];
        if std::mem::take(&mut self.changed) {
            entries.push((MISSED.to_owned(), to_json(&self.missed)?));
        }
        Ok(entries)
    }

    /// Counts a promise that is given.
    pub(crate) fn count_given(&mut self) {
        self.counts.given += 1;
    }

    /// Counts the promises of an earlier version that it did not judge. `open` promises of unfinished jobs are left.
    pub(crate) fn classify(&mut self, open: u64) {
        self.counts.classify(open);
    }

    /// Counts a judgement, and lists the promise if it was not kept.
    pub(crate) fn add(&mut self, job: i64, wall: Timestamp, given: &GivenPromise, verdict: Verdict) {
        *self.counts.number(verdict) += 1;
        let (late, cause) = match verdict {
            Verdict::Late { by, cause } => (Some(by), cause),
            Verdict::Lost { cause } => (None, cause),
            Verdict::Kept | Verdict::Withdrawn => return,
        };
        self.missed.push_back(Missed { job, at: wall, latest: given.latest, late, cause });
        if self.missed.len() > LISTED_MOST {
            self.missed.pop_front();
        }
        self.changed = true;
    }

    /// Takes back the judgement of a start that did not take place.
    pub(crate) fn take_back(&mut self, job: i64, given: &GivenPromise, verdict: Verdict) {
        let number = self.counts.number(verdict);
        *number = number.saturating_sub(1);
        let is_it = |missed: &Missed| missed.job == job && missed.latest == given.latest;
        if let Some(at) = self.missed.iter().rposition(is_it) {
            self.missed.remove(at);
            self.changed = true;
        }
    }

    /// Returns the last promises that were not kept, as clients see them, in order.
    pub(crate) fn missed(&self, now: Now) -> Vec<MissedPromise> {
        let view = |missed: &Missed| MissedPromise {
            job: missed.job,
            at: missed.at,
            promised: now.wall_at(missed.latest),
            judgement: if missed.late.is_some() { Judgement::Late } else { Judgement::Lost },
            by: missed.late.map(Span::as_secs_f64),
            why: missed.cause,
        };
        self.missed.iter().map(view).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_an_earlier_version_stay_as_they_were() {
        let stored = r#"{"promises":10,"kept":6,"broken":3,"late":1}"#;
        let mut counts: PromiseCounts = serde_json::from_str(stored).unwrap();
        counts.classify(2);
        counts.classify(0);
        assert_eq!((counts.given, counts.kept, counts.late, counts.broken), (10, 6, 1, 3));
        assert_eq!((counts.open(), counts.earlier, counts.lost, counts.withdrawn), (2, 1, 0, 0));
        let text = serde_json::to_string(&counts).unwrap();
        assert_eq!(serde_json::from_str::<PromiseCounts>(&text).unwrap(), counts);
    }

    /// The earlier version counted a job once that waits for its second run.
    #[test]
    fn an_open_promise_that_was_not_counted_is_counted() {
        let mut counts: PromiseCounts =
            serde_json::from_str(r#"{"promises":1,"kept":1,"broken":0,"late":0}"#).unwrap();
        counts.classify(1);
        assert_eq!((counts.given, counts.kept, counts.open(), counts.earlier), (2, 1, 1, 0));
    }

    #[test]
    fn after_a_recovery_the_open_promises_are_counted_anew() {
        let mut counts = PromiseCounts { given: 9, kept: 3, ..PromiseCounts::default() };
        counts.classify(6);
        let text = unclassified(&serde_json::to_string(&counts).unwrap()).unwrap();
        let mut counts: PromiseCounts = serde_json::from_str(&text).unwrap();
        counts.classify(4);
        assert_eq!((counts.open(), counts.earlier), (4, 2));
        assert_eq!(unclassified("?"), None);
    }

    #[test]
    fn the_list_of_missed_promises_is_bounded_and_the_counts_are_not() {
        let mut book = PromiseBook::default();
        let given = GivenPromise::new(Timestamp::UNIX_EPOCH, Time::from_ticks(7), Span::ZERO);
        for job in 0..60 {
            book.add(
                job,
                Timestamp::UNIX_EPOCH,
                &given,
                Verdict::Lost { cause: PromiseChangeReason::Refused },
            );
        }
        assert_eq!((book.missed.len(), book.counts.lost), (LISTED_MOST, 60));
        assert_eq!(book.missed.front().map(|missed| missed.job), Some(10));
        assert_eq!([(); 2].map(|()| book.take_changed().unwrap().len()), [2, 1]);
    }
}
