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
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use miserly_api::model::{LostBy, Phase};
use miserly_core::Time;
use miserly_engine::{JobRow, JobState, JournalBatch, JournalLine, Record};
use miserly_launch::StartRecord;
use miserly_launcher::{EarlierBoots, queue_anew, take_over};
use rustix::process::geteuid;

use crate::store::{Recovery, Store, StoreError, ended_folders};

/// The number of lines among which the last one with a wall time is.
const LAST: i64 = 1000;

/// Makes a damaged state in `folder` usable again. Leaves an undamaged state as it is.
///
/// # Errors
/// As [`Store::recover`].
pub fn recover(folder: &Path) -> Result<Recovery, StoreError> {
    Store::recover(folder, |store, recovery| settle(store, recovery, folder))
}

/// Replaces the state in `folder` by a backup. The present files are kept under another name.
///
/// A job whose attempt the backup has, and that left no record here, is lost.
///
/// # Errors
/// As [`Store::restore`].
pub fn restore(folder: &Path, backup: &Path) -> Result<Recovery, StoreError> {
    Store::restore(folder, backup, |store, recovery| {
        settle(store, recovery, folder)?;
        lose_missing(store, folder)
    })
}

/// Ends the jobs with an attempt that left no record on this machine. It ended since, or runs on
/// another one. A restartable job is queued again.
fn lose_missing(store: &mut Store, folder: &Path) -> Result<(), StoreError> {
    let mut batch = JournalBatch::default();
    let homes = homes(folder)?;
    for row in store.live_jobs()? {
        let Ok(mut record) = serde_json::from_str::<Record>(&row.body) else { continue };
        let Some(run) = &record.run else { continue };
        let name = format!("{}.{}", row.number, run.nth);
        if homes.iter().any(|home| home.join(&name).exists()) {
            continue;
        }
        if record.submission.restartable {
            queue_anew(&mut record, false);
        } else {
            record.finish_lost(Phase::Lost { at: Timestamp::now(), why: LostBy::Restored });
        }
        let (body, ended) = (serde_json::to_string(&record).unwrap_or_default(), record.is_finished());
        batch.rows.push(JobRow { body, ended, ..row });
    }
    count_promises_anew(store, &mut batch);
    store.commit(&batch)
}

/// Makes the next daemon count anew which promises are open: those of some jobs are gone with their records.
fn count_promises_anew(store: &Store, batch: &mut JournalBatch) {
    let counts = store.meta("counts").and_then(miserly_engine::unclassified);
    batch.values.extend(counts.map(|text| ("counts".to_owned(), text)));
}

/// Brings the records of live jobs up to date with the records of their attempts.
fn settle(store: &mut Store, recovery: &Recovery, folder: &Path) -> Result<(), StoreError> {
    let (attempts, home) = (last_attempts(folder)?, folder.join("attempts"));
    let since = Since::read(store, recovery.backup.as_ref().map_or(0, |backup| backup.last_line))?;
    // A store that is open reads each value.
    let boots = EarlierBoots::with_last(store).unwrap_or_default();
    let mut batch = JournalBatch::default();
    batch.lines.extend(recovered_line(store)?);
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
            take_over(&mut record, last.nth, last.started(&boots));
        }
        let body = serde_json::to_string(&record).unwrap_or_default();
        batch.rows.extend((body != row.body).then_some(JobRow { body, ..row }));
    }
    // The number of an attempt's folder must not be used again.
    let next = store.meta("next_number").and_then(|text| text.parse().ok()).unwrap_or(1);
    let next = attempts.keys().map(|job| job + 1).fold(since.next_number.max(next), i64::max);
    batch.values.push(("next_number".to_owned(), next.to_string()));
    count_promises_anew(store, &mut batch);
    store.commit(&batch)
}

/// Returns the line that marks the recovery in the journal, unless the journal is empty.
fn recovered_line(store: &Store) -> Result<Option<String>, StoreError> {
    let mut last = None;
    store.journal(store.last_line().saturating_sub(LAST), &mut |line| {
        last = serde_json::from_str::<JournalLine>(&line.body).ok().and_then(|line| line.wall()).or(last);
        ControlFlow::Continue(())
    })?;
    let line = last.map(|wall| JournalLine::Recovered { wall });
    Ok(line.and_then(|line| serde_json::to_string(&line).ok()))
}

/// The last attempt of a job that has a folder.
struct LastAttempt {
    nth: u32,
    folder: PathBuf,
}

impl LastAttempt {
    /// Moves the record of an ended attempt to where a daemon looks for it. A daemon with an executor, whose attempts are
    /// root's, looks where the record is.
    fn bring_back(&self, home: &Path) -> io::Result<()> {
        if fs::metadata(home).is_ok_and(|home| home.uid() != geteuid().as_raw()) {
            return Ok(());
        }
        let to = self.folder.file_name().map(|name| home.join(name));
        match to.filter(|to| *to != self.folder) {
            Some(to) => {
                fs::create_dir_all(home)?;
                fs::rename(&self.folder, to)
            }
            None => Ok(()),
        }
    }

    /// Returns the start, if its record is still there and the clock of its boot is known.
    fn started(&self, boots: &EarlierBoots) -> Option<Time> {
        let started: StartRecord =
            serde_json::from_slice(&fs::read(self.folder.join("started.json")).ok()?).ok()?;
        boots.ticks(&started.instant())
    }
}

/// Returns the highest number of a job that has a record of an attempt, or 0.
pub(crate) fn highest_job(folder: &Path) -> Result<i64, StoreError> {
    Ok(last_attempts(folder)?.keys().next_back().copied().unwrap_or(0))
}

/// Returns the last attempt of each job, among those that run and those that ended since the oldest
/// backup.
fn last_attempts(folder: &Path) -> Result<BTreeMap<i64, LastAttempt>, StoreError> {
    attempts_in(homes(folder)?.into_iter())
}

/// Returns the folders with attempts, and with the records of those that ended since the oldest backup.
fn homes(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    Ok(std::iter::once(folder.join("attempts")).chain(ended_folders(folder)?).collect())
}

/// Returns the last attempt of each job in some folders.
fn attempts_in(homes: impl Iterator<Item = PathBuf>) -> Result<BTreeMap<i64, LastAttempt>, StoreError> {
    let mut last: BTreeMap<i64, LastAttempt> = BTreeMap::new();
    for home in homes {
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
