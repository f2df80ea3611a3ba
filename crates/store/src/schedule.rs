//! The thread that takes backups at intervals.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use super::backup::{BACKUPS, Backups};
use super::{backup, files};

/// The longest wait for the first backup.
const FIRST: Duration = Duration::from_mins(1);

/// The interval of the backups and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupPlan {
    /// The time from one backup to the next.
    pub interval: Duration,
    /// The number of backups to keep, at least 1.
    pub keep: usize,
}

/// A thread that takes backups. It ends when this handle is dropped.
pub struct BackupThread(Sender<BackupPlan>);

impl BackupThread {
    /// Starts the thread for the state in `folder`.
    ///
    /// # Errors
    /// If the system has no thread.
    pub fn start(folder: PathBuf, plan: BackupPlan) -> io::Result<BackupThread> {
        let (sender, plans) = channel();
        thread::Builder::new().name("backups".to_owned()).spawn(move || run(&folder, plan, &plans))?;
        Ok(BackupThread(sender))
    }

    /// Changes the interval and the number of backups.
    pub fn change(&self, plan: BackupPlan) {
        // The thread ends only after this handle.
        let _ = self.0.send(plan);
    }
}

fn run(folder: &Path, mut plan: BackupPlan, plans: &Receiver<BackupPlan>) {
    let mut backups = Backups::new(folder);
    let mut wait = remaining(folder, plan.interval);
    loop {
        match plans.recv_timeout(wait) {
            Ok(changed) => {
                plan = changed;
                wait = remaining(folder, plan.interval);
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
        match backups.take(plan.keep) {
            Ok(Some(path)) => tracing::info!("backup {} is complete", path.display()),
            Ok(None) => {}
            Err(error) => tracing::error!("no backup was taken: {error}"),
        }
        wait = plan.interval;
    }
}

/// Returns the time until the next backup. The folder of the backups changes when one is taken.
fn remaining(folder: &Path, interval: Duration) -> Duration {
    let backups = folder.join(BACKUPS);
    if !backups.exists()
        && let Err(error) = files::make_folder(&backups)
    {
        tracing::error!("there will be no backups: {error}");
    }
    let changed = backups.metadata().and_then(|folder| folder.modified());
    let age = changed.ok().and_then(|changed| changed.elapsed().ok()).unwrap_or_default();
    let is_first = backup::list(folder).is_ok_and(|backups| backups.is_empty());
    if is_first { interval.min(FIRST) } else { interval }.saturating_sub(age)
}
