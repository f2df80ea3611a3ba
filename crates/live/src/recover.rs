//! Recovery of a damaged state: rows from the store and its backup, and the attempts that began or
//! ended since.
//!
//! A backup, or a database that lost its last commits, is older than the processes on the machine.
//! The folders of attempts are not. Each has a record from before its command may run, and keeps it
//! until a backup contains its end. The records of jobs are brought up to date with them here. So a
//! running job is adopted, and no job runs twice.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use miserly_engine::{Attempt, JournalLine};
use miserly_launch::StartRecord;
use miserly_launcher::{LastAttempt, Recovered, lose_missing};
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
        let homes = homes(folder)?;
        let has_record = |Attempt { job, nth }: Attempt| {
            homes.iter().any(|home| home.join(format!("{job}.{nth}")).exists())
        };
        Ok(lose_missing(store, has_record, Timestamp::now())?)
    })
}

/// Brings the records of live jobs up to date with the records of their attempts.
fn settle(store: &mut Store, recovery: &Recovery, folder: &Path) -> Result<(), StoreError> {
    let (attempts, home) = (last_attempts(folder)?, folder.join("attempts"));
    let mut recovered = Recovered {
        attempts: attempts.iter().map(|(job, last)| (*job, last.attempt())).collect(),
        outdated: recovery.outdated.iter().copied().collect(),
        wall: last_wall(store)?,
        ..Recovered::default()
    };
    read_since(store, recovery.backup.as_ref().map_or(0, |backup| backup.last_line), &mut recovered)?;
    recovered.settle(store, |attempt: Attempt| {
        let Some(last) = attempts.get(&attempt.job) else { return Ok(()) };
        last.bring_back(&home).map_err(|source| io_error(&last.folder, source))
    })
}

/// Returns the wall time of the last line that has one.
fn last_wall(store: &Store) -> Result<Option<Timestamp>, StoreError> {
    let mut last = None;
    store.journal(store.last_line().saturating_sub(LAST), &mut |line| {
        last = serde_json::from_str::<JournalLine>(&line.body).ok().and_then(|line| line.wall()).or(last);
        ControlFlow::Continue(())
    })?;
    Ok(last)
}

/// The folder of the last attempt of a job.
struct LastFolder {
    nth: u32,
    folder: PathBuf,
}

impl LastFolder {
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

    /// Returns the attempt by the records that are still there.
    fn attempt(&self) -> LastAttempt {
        let started = fs::read(self.folder.join("started.json")).ok();
        let started = started.and_then(|text| serde_json::from_slice::<StartRecord>(&text).ok());
        LastAttempt {
            nth: self.nth,
            started: started.map(|started| started.instant()),
            has_ended: self.folder.join("end.json").exists(),
        }
    }
}

/// Returns the highest number of a job that has a record of an attempt, or 0.
pub(crate) fn highest_job(folder: &Path) -> Result<i64, StoreError> {
    Ok(last_attempts(folder)?.keys().next_back().copied().unwrap_or(0))
}

/// Returns the last attempt of each job, among those that run and those that ended since the oldest
/// backup.
fn last_attempts(folder: &Path) -> Result<BTreeMap<i64, LastFolder>, StoreError> {
    attempts_in(homes(folder)?.into_iter())
}

/// Returns the folders with attempts, and with the records of those that ended since the oldest backup.
fn homes(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    Ok(std::iter::once(folder.join("attempts")).chain(ended_folders(folder)?).collect())
}

/// Returns the last attempt of each job in some folders.
fn attempts_in(homes: impl Iterator<Item = PathBuf>) -> Result<BTreeMap<i64, LastFolder>, StoreError> {
    let mut last: BTreeMap<i64, LastFolder> = BTreeMap::new();
    for home in homes {
        let entries = match fs::read_dir(&home) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_err(|source| io_error(&home, source))?,
        };
        for entry in entries {
            let name = entry.map_err(|source| io_error(&home, source))?.file_name();
            let Some((job, nth)) = name.to_str().and_then(attempt) else { continue };
            if last.get(&job).is_none_or(|other| other.nth < nth) {
                last.insert(job, LastFolder { nth, folder: home.join(&name) });
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

/// Adds the facts of lines that are newer than the backup.
fn read_since(store: &Store, last_line: i64, recovered: &mut Recovered) -> Result<(), StoreError> {
    store.journal(last_line + 1, &mut |line| {
        if let Ok(JournalLine::Round(round)) = serde_json::from_str(&line.body) {
            let submitted = round.submitted.iter().map(|job| job.number + 1);
            recovered.next_number = submitted.fold(recovered.next_number, i64::max);
            // Their users cancelled or held them, or the engine removed them from the ledger.
            recovered.withdrawn.extend(round.withdrawn);
        }
        ControlFlow::Continue(())
    })
}

fn io_error(path: &Path, source: io::Error) -> StoreError {
    StoreError::Io { path: path.display().to_string(), source }
}
