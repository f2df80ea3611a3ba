//! Attempts that are newer than the records of their jobs: the state is an older one.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use miserly_api::model::{LostBy, Phase, PromiseChangeReason};
use miserly_core::{State, Time};
use miserly_engine::{
    Attempt, JobRow, JobState, Journal, JournalBatch, JournalError, JournalLine, Record, Run,
};
use miserly_launch::StoredInstant;
use miserly_marks::mark;

use crate::clock::EarlierBoots;
use crate::site::Host;
use crate::start::StartError;
use crate::sweep::gpus_of;

/// Brings the records of a state that is older than the folders of its attempts up to date: a job
/// that waits there, and has a newer attempt, is that attempt's. Returns the highest number of a job
/// that has a record of an attempt; such a number is not used again.
///
/// The records of a state that is not older are as they are: an attempt has no folder before it is
/// in the record of its job.
///
/// # Errors
/// If the state cannot be read or written, or the folders cannot be listed.
pub(crate) fn bring_up_to_date(journal: &mut impl Journal, host: &impl Host) -> Result<i64, StartError> {
    let highest = host.highest_job()?;
    // In order, so that the last attempt of each job counts.
    let attempts: BTreeMap<i64, Attempt> =
        host.attempts()?.into_iter().map(|attempt| (attempt.job, attempt)).collect();
    if attempts.is_empty() {
        return Ok(highest);
    }
    let boots = EarlierBoots::with_last(journal)?;
    let mut batch = JournalBatch::default();
    for row in journal.live_jobs()? {
        let Some(last) = attempts.get(&row.number) else { continue };
        let Ok(mut record) = serde_json::from_str::<Record>(&row.body) else { continue };
        let is_newer = last.nth > record.attempts;
        if is_newer {
            mark!("the state is older than an attempt");
            tracing::warn!("job {}: the state is older than its attempt {}", row.number, last.nth);
            let started = host.started(*last).and_then(|started| boots.ticks(&started));
            take_over(&mut record, last.nth, started);
        }
        if add_gpus(&mut record, *last, host) || is_newer {
            batch.rows.push(JobRow { body: serde_json::to_string(&record).unwrap_or_default(), ..row });
        }
    }
    journal.commit(batch)?;
    Ok(highest)
}

/// Adds the GPUs of an attempt to its record, which a restore took over without them. Returns whether there are any.
fn add_gpus(record: &mut Record, attempt: Attempt, host: &impl Host) -> bool {
    let wants = record.submission.gpu_count() > 0;
    let lacks = |run: &&mut Run| wants && run.nth == attempt.nth && run.gpus.is_empty();
    let Some(run) = record.run.as_mut().filter(lacks) else { return false };
    run.gpus = host.spec(attempt).as_ref().map(gpus_of).unwrap_or_default();
    !run.gpus.is_empty()
}

/// The last attempt of a job that has a record on the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastAttempt {
    /// The number of the attempt, from 1.
    pub nth: u32,
    /// The instant of its start, if that is recorded.
    pub started: Option<StoredInstant>,
    /// Whether its end is recorded.
    pub has_ended: bool,
}

/// The last attempt of each job that has a record on the machine.
pub type LastAttempts = BTreeMap<i64, LastAttempt>;

/// Facts about a recovered or a restored state that its rows lack.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// The attempts on the machine.
    pub attempts: LastAttempts,
    /// Live jobs whose rows are older than other rows.
    pub outdated: BTreeSet<i64>,
    /// Jobs that later lines of the journal withdrew from a ledger.
    pub withdrawn: BTreeSet<i64>,
    /// The number after the highest one of a job in later lines.
    pub next_number: i64,
    /// The wall time of the last line; `None` if the journal is empty.
    pub wall: Option<Timestamp>,
}

impl Recovered {
    /// Brings the records of live jobs up to date with the records of their attempts.
    ///
    /// `bring_back` makes the record of an attempt one that the next daemon finds.
    ///
    /// # Errors
    /// If the state cannot be read or written, or a record cannot be brought back.
    pub fn settle<E: From<JournalError>>(
        &self,
        journal: &mut impl Journal,
        mut bring_back: impl FnMut(Attempt) -> Result<(), E>,
    ) -> Result<(), E> {
        // A store that is open reads each value.
        let boots = EarlierBoots::with_last(journal).unwrap_or_default();
        let mut batch = JournalBatch::default();
        let line = self.wall.map(|wall| JournalLine::Recovered { wall });
        batch.lines.extend(line.and_then(|line| serde_json::to_string(&line).ok()));
        for row in journal.live_jobs()? {
            let Ok(mut record) = serde_json::from_str::<Record>(&row.body) else { continue };
            let run = record.run.as_ref().map(|run| run.nth);
            let waits = record.waits.map(|waits| waits.nth);
            let last = self.attempts.get(&row.number);
            let is_newer = |last: &&LastAttempt| {
                // A shim that waited may have begun its window since. Its command may have failed to start.
                let has_begun = last.started.is_some() || last.has_ended;
                let nth = Some(last.nth);
                last.nth > record.attempts || nth == run || nth == waits && has_begun
            };
            let last = last.filter(is_newer);
            if self.outdated.contains(&row.number) {
                let held = record.state == JobState::Held || self.withdrawn.contains(&row.number);
                queue_anew(&mut record, held && last.is_none());
            }
            if let Some(LastAttempt { nth, started, .. }) = last {
                bring_back(Attempt { job: row.number, nth: *nth })?;
                take_over(&mut record, *nth, started.as_ref().and_then(|started| boots.ticks(started)));
            }
            let body = serde_json::to_string(&record).unwrap_or_default();
            batch.rows.extend((body != row.body).then_some(JobRow { body, ..row }));
        }
        // The number of an attempt's folder must not be used again.
        let next = journal.value("next_number")?.and_then(|text| text.parse().ok()).unwrap_or(1);
        let next = self.attempts.keys().map(|job| job + 1).fold(self.next_number.max(next), i64::max);
        batch.values.push(("next_number".to_owned(), next.to_string()));
        count_promises_anew(journal, &mut batch)?;
        Ok(journal.commit(batch)?)
    }
}

/// Ends the jobs of a restored state with an attempt that left no record on this machine. It ended since, or runs on
/// another one. A restartable job is queued again. `now` is the time of day.
///
/// # Errors
/// If the state cannot be read or written.
pub fn lose_missing(
    journal: &mut impl Journal,
    has_record: impl Fn(Attempt) -> bool,
    now: Timestamp,
) -> Result<(), JournalError> {
    let mut batch = JournalBatch::default();
    for row in journal.live_jobs()? {
        let Ok(mut record) = serde_json::from_str::<Record>(&row.body) else { continue };
        let Some(run) = &record.run else { continue };
        if has_record(Attempt { job: row.number, nth: run.nth }) {
            continue;
        }
        if record.submission.restartable {
            queue_anew(&mut record, false);
        } else {
            record.finish_lost(Phase::Lost { at: now, why: LostBy::Restored });
        }
        let (body, ended) = (serde_json::to_string(&record).unwrap_or_default(), record.is_finished());
        batch.rows.push(JobRow { body, ended, ..row });
    }
    count_promises_anew(journal, &mut batch)?;
    journal.commit(batch)
}

/// Makes the next daemon count anew which promises are open: those of some jobs are gone with their records.
fn count_promises_anew(journal: &impl Journal, batch: &mut JournalBatch) -> Result<(), JournalError> {
    let counts = journal.value("counts")?.and_then(|text| miserly_engine::unclassified(&text));
    batch.values.extend(counts.map(|text| ("counts".to_owned(), text)));
    Ok(())
}

/// Queues a job as if it had just been submitted, since its ledger entry is outdated.
fn queue_anew(record: &mut Record, held: bool) {
    record.state = if held { JobState::Held } else { JobState::Deferred };
    (record.entry, record.run, record.started) = (None, None, None);
    record.promise.renew(PromiseChangeReason::Lost);
}

/// Makes an attempt that began after the record the present one of its job, as an opportunistic
/// one. The next daemon asks its shim, and finds it running, in its window, or ended.
fn take_over(record: &mut Record, nth: u32, started: Option<Time>) {
    if record.run.as_ref().is_some_and(|run| run.nth == nth) {
        return;
    }
    let waits = record.entry.as_ref().is_some_and(|entry| entry.entry().state == State::Waiting);
    if record.run.is_some() || !waits {
        mark!("an attempt of a job that did not run by its record");
        queue_anew(record, false);
    }
    record.attempts = nth;
    record.started = started.or(record.started);
    record.run = Some(Run::new(nth, vec![], false));
    record.waits = None;
}

#[cfg(test)]
mod tests {
    use miserly_engine::{MemoryJournal, WaitingShim};

    use super::*;

    /// Returns the record, after a restore, of a job whose shim waited when the state was copied.
    fn settled(last: LastAttempt) -> Record {
        let mut record = Record::default();
        (record.number, record.attempts) = (1, 1);
        record.waits = Some(WaitingShim { nth: 1, is_withdrawn: false });
        let row = JobRow { number: 1, body: serde_json::to_string(&record).unwrap(), ..JobRow::default() };
        let mut journal = MemoryJournal::default();
        journal.commit(JournalBatch { rows: vec![row], ..JournalBatch::default() }).unwrap();
        let recovered = Recovered { attempts: [(1, last)].into(), ..Recovered::default() };
        recovered.settle(&mut journal, |_| Ok::<_, JournalError>(())).unwrap();
        serde_json::from_str(&journal.live_jobs().unwrap()[0].body).unwrap()
    }

    /// Its command failed to start, so only its end is recorded.
    #[test]
    fn the_attempt_of_a_shim_that_waited_and_ended_since_is_that_of_its_job() {
        for has_ended in [false, true] {
            let record = settled(LastAttempt { nth: 1, started: None, has_ended });
            assert_eq!((record.run.is_some(), record.waits.is_none()), (has_ended, has_ended));
        }
    }
}
