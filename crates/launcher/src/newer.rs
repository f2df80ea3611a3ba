//! Attempts that are newer than the records of their jobs: the state is an older one.

use std::collections::BTreeMap;

use miserly_api::model::PromiseChangeReason;
use miserly_core::{State, Time};
use miserly_engine::{Attempt, JobRow, JobState, Journal, JournalBatch, Record, Run};
use miserly_marks::mark;

use crate::clock::EarlierBoots;
use crate::site::Host;
use crate::start::StartError;

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
        if last.nth > record.attempts {
            mark!("the state is older than an attempt");
            tracing::warn!("job {}: the state is older than its attempt {}", row.number, last.nth);
            let started = host.started(*last).and_then(|started| boots.ticks(&started));
            take_over(&mut record, last.nth, started);
            batch.rows.push(JobRow { body: serde_json::to_string(&record).unwrap_or_default(), ..row });
        }
    }
    journal.commit(batch)?;
    Ok(highest)
}

/// Queues a job as if it had just been submitted, since its ledger entry is outdated.
pub fn queue_anew(record: &mut Record, held: bool) {
    record.state = if held { JobState::Held } else { JobState::Deferred };
    (record.entry, record.run, record.started) = (None, None, None);
    record.promise.renew(PromiseChangeReason::Lost);
}

/// Makes an attempt that began after the record the present one of its job, as an opportunistic
/// one. The next daemon asks its shim, and finds it running, in its window, or ended.
pub fn take_over(record: &mut Record, nth: u32, started: Option<Time>) {
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
}
