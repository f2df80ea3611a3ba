//! Recovery of a damaged state: rows from the store and its backup, and the attempts that began or
//! ended since.
//!
//! A backup, or a database that lost its last commits, is older than the processes on the machine.
//! The folders of attempts are not. Each has a record from before its command may run, and keeps it
//! until a backup contains its end. The records of jobs are brought up to date with them here. So a
//! running job is adopted, and no job runs twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use miserly_core::State;
use miserly_engine::{ClockMark, JobRow, JobState, JournalBatch, JournalLine, PromiseCause, Record, Run};
use miserly_launch::StartRecord;

use crate::store::{Recovery, Store, StoreError, ended_folders};

/// Makes a damaged state in `folder` usable again. Leaves an undamaged state as it is.
///
/// # Errors
/// As [`Store::recover`].
pub fn recover(folder: &Path) -> Result<Recovery, StoreError> {
    Store::recover(folder, |store, recovery| settle(store, recovery, folder))
}

/// Brings the records of live jobs up to date with the records of their attempts.
fn settle(store: &mut Store, recovery: &Recovery, folder: &Path) -> Result<(), StoreError> {
    let (attempts, home) = (last_attempts(folder)?, folder.join("attempts"));
    let since = Since::read(store, recovery.backup.as_ref().map_or(0, |backup| backup.last_line))?;
    let clock = store.meta("clock").and_then(|text| serde_json::from_str::<ClockMark>(text).ok());
    let mut batch = JournalBatch::default();
    for row in store.live_jobs()? {
        let Ok(mut record) = serde_json::from_str::<Record>(&row.body) else { continue };
        let run = record.run.as_ref().map(|run| run.nth);
        let last =
            attempts.get(&row.number).filter(|last| last.nth > record.attempts || Some(last.nth) == run);
        if recovery.outdated.contains(&row.number) {
            let held = record.state == JobState::Held || since.withdrawn.contains(&row.number);
            queue_anew(&mut record, held && last.is_none());
        }
        if let Some(last) = last {
            last.bring_back(&home).map_err(|source| io_error(&last.folder, source))?;
            adopt(&mut record, last, clock.as_ref());
        }
        let body = serde_json::to_string(&record).unwrap_or_default();
        batch.rows.extend((body != row.body).then_some(JobRow { body, ..row }));
    }
    // The number of an attempt's folder must not be used again.
    let next = store.meta("next_number").and_then(|text| text.parse().ok()).unwrap_or(1);
    let next = attempts.keys().map(|job| job + 1).fold(since.next_number.max(next), i64::max);
    batch.values.push(("next_number".to_owned(), next.to_string()));
    store.commit(&batch)
}

/// Queues a job as if it had just been submitted, since its ledger entry is outdated.
fn queue_anew(record: &mut Record, held: bool) {
    record.state = if held { JobState::Held } else { JobState::Deferred };
    (record.entry, record.run, record.started) = (None, None, None);
    record.promise.renew(PromiseCause::Lost);
}

/// Makes an attempt that began after the record the present one of its job, as an opportunistic
/// one. The next daemon asks its shim, and finds it running, in its window, or ended.
fn adopt(record: &mut Record, last: &LastAttempt, clock: Option<&ClockMark>) {
    if record.run.as_ref().is_some_and(|run| run.nth == last.nth) {
        return;
    }
    let waits = record.entry.as_ref().is_some_and(|entry| entry.entry().state == State::Waiting);
    if record.run.is_some() || !waits {
        queue_anew(record, false);
    }
    record.attempts = last.nth;
    record.started = last.started(clock).or(record.started);
    record.run = Some(Run::new(last.nth, vec![], false));
}

/// The last attempt of a job that has a folder.
struct LastAttempt {
    nth: u32,
    folder: PathBuf,
}

impl LastAttempt {
    /// Moves the record of an ended attempt to where a daemon looks for it.
    fn bring_back(&self, home: &Path) -> io::Result<()> {
        let to = self.folder.file_name().map(|name| home.join(name));
        match to.filter(|to| *to != self.folder) {
            Some(to) => {
                fs::create_dir_all(home)?;
                fs::rename(&self.folder, to)
            }
            None => Ok(()),
        }
    }

    /// Returns the start in ticks, if its record is still there and from the present boot of the
    /// machine.
    fn started(&self, clock: Option<&ClockMark>) -> Option<i64> {
        let started: StartRecord =
            serde_json::from_slice(&fs::read(self.folder.join("started.json")).ok()?).ok()?;
        let clock = clock.filter(|clock| clock.boot == started.main.boot_id)?;
        Some(started.at.0.saturating_add(clock.offset))
    }
}

/// Returns the last attempt of each job, among those that run and those that ended since the oldest
/// backup.
fn last_attempts(folder: &Path) -> Result<BTreeMap<i64, LastAttempt>, StoreError> {
    let mut last: BTreeMap<i64, LastAttempt> = BTreeMap::new();
    for home in std::iter::once(folder.join("attempts")).chain(ended_folders(folder)?) {
        let entries = match fs::read_dir(&home) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_err(|source| io_error(&home, source))?,
        };
        for entry in entries {
            let name = entry.map_err(|source| io_error(&home, source))?.file_name();
            let Some((job, nth)) = name.to_str().and_then(attempt) else { continue };
            if last.get(&job).is_none_or(|other| other.nth < nth) {
                last.insert(job, LastAttempt { nth, folder: home.join(&name) });
            }
        }
    }
    Ok(last)
}

/// Parses the name of an attempt's folder.
fn attempt(name: &str) -> Option<(i64, u32)> {
    let (job, nth) = name.split_once('.')?;
    Some((job.parse().ok()?, nth.parse().ok()?))
}

/// Facts of the journal that are newer than the backup.
struct Since {
    /// Jobs that their users cancelled or held, or that the engine removed from the ledger.
    withdrawn: BTreeSet<i64>,
    /// The number after the highest one of a submitted job.
    next_number: i64,
}

impl Since {
    fn read(store: &Store, last_line: i64) -> Result<Since, StoreError> {
        let mut since = Since { withdrawn: BTreeSet::new(), next_number: 1 };
        store.journal(last_line + 1, &mut |line| {
            if let Ok(JournalLine::Round(round)) = serde_json::from_str(&line.body) {
                let submitted = round.submitted.iter().map(|job| job.number + 1);
                since.next_number = submitted.fold(since.next_number, i64::max);
                since.withdrawn.extend(round.withdrawn);
            }
            ControlFlow::Continue(())
        })?;
        Ok(since)
    }
}

fn io_error(path: &Path, source: io::Error) -> StoreError {
    StoreError::Io { path: path.display().to_string(), source }
}
