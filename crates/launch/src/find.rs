//! What has become of an attempt, for a daemon that was away.

use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::end::End;
use crate::error::FindError;
use crate::folder::{self, Folder, Lock, Started};
use crate::handle::{PATIENCE, Shim};
use crate::line::Line;
use crate::procfs;
use crate::session::{Kill, Session};
use crate::time::BootTime;

/// How often a lock is tried that is held by a shim which cannot be reached: one that begins, or one that ends. Both take
/// milliseconds, and no event tells of them.
const AGAIN: Duration = Duration::from_millis(5);

/// What has become of an attempt.
#[derive(Debug)]
pub enum Found {
    /// Its shim is there, and connected.
    Alive(Shim),
    /// It ended, and this is how.
    Ended(End),
    /// Its command was never run, and never will be.
    NeverRan,
    /// Its shim is dead and has left no end. Nothing of the job's session is left.
    Lost(Lost),
}

/// An attempt without an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The main process that it had.
    pub started: Started,
    /// What happened to the shim.
    pub to: LostTo,
    /// What was left of the job, and was killed now.
    pub killed: Vec<u32>,
}

/// What happened to a shim that left no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostTo {
    /// The machine was started anew, and everything died with it.
    Reboot,
    /// It was killed.
    Kill,
}

/// Finds out what has become of the attempt in a folder, and settles it: an attempt that was not started is given up, what is left
/// of one without a shim is killed.
///
/// It may take some seconds where processes are slow to die, and [`PATIENCE`] at most for a lock that is held.
///
/// # Errors
/// [`FindError`]: nothing is settled then, and it can be called again.
pub fn find(dir: &Path) -> Result<Found, FindError> {
    if !dir.exists() {
        return Ok(Found::NeverRan);
    }
    let mut folder = Folder::open(dir)?;
    let until = BootTime::now().after(PATIENCE);
    while BootTime::now() < until {
        if let Some(end) = folder.read(folder::END)? {
            return Ok(Found::Ended(end));
        }
        if let Some(lock) = folder.lock()? {
            return settle(&folder, &lock);
        }
        match reach(folder)? {
            Ok(shim) => return Ok(Found::Alive(shim)),
            Err(back) => folder = back,
        }
        thread::sleep(AGAIN);
    }
    Err(FindError::Locked { dir: dir.to_owned() })
}

/// Connects to the shim that holds the lock; the folder again if it cannot be reached.
fn reach(folder: Folder) -> Result<Result<Shim, Folder>, FindError> {
    let Some(identity) = folder.read(folder::SHIM)? else { return Ok(Err(folder)) };
    let Ok(line) = folder.connect().and_then(Line::new) else { return Ok(Err(folder)) };
    let dir = folder.path().to_owned();
    Shim::meet(folder, identity, line).map_err(|error| FindError::Processes { dir, error })
}

/// Judges an attempt that has no shim: whoever holds the lock decides.
fn settle(folder: &Folder, lock: &Lock) -> Result<Found, FindError> {
    // A shim may have written its end and gone since it was last looked at.
    if let Some(end) = folder.read(folder::END)? {
        return Ok(Found::Ended(end));
    }
    let Some(started) = folder.read::<Started>(folder::STARTED)? else {
        folder.void(lock)?;
        return Ok(Found::NeverRan);
    };
    let dir = || folder.path().to_owned();
    let boot_id = procfs::boot_id().map_err(|error| FindError::Processes { dir: dir(), error })?;
    if boot_id != started.main.boot_id {
        return Ok(Found::Lost(Lost { started, to: LostTo::Reboot, killed: Vec::new() }));
    }
    let killed = Session::of(&started).kill().map_err(|error| FindError::Processes { dir: dir(), error })?;
    match killed {
        Kill::All(killed) => Ok(Found::Lost(Lost { started, to: LostTo::Kill, killed })),
        Kill::Survivors(pids) => Err(FindError::Survivors { dir: dir(), pids }),
    }
}
