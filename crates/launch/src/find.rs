//! Determines the state of an attempt after a restart of the daemon.

use miserly_attempt::{AttemptEnd, BootTime, Files as _, FindError, REPLY_TIMEOUT, StartRecord, files};
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::MachineClock as _;
use crate::clock::current_boot;
use crate::connection::Connection;
use crate::folder::{AttemptLock, Folder};
use crate::handle::Shim;
use crate::session::{JobSession, KillResult};

/// Interval between attempts to take the lock of a shim that is unreachable because it begins or
/// exits.
///
/// Both take milliseconds, and no event reports them.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// The state of an attempt.
#[derive(Debug)]
pub enum FoundAttempt {
    /// The shim is alive and connected.
    Alive(Shim),
    /// The attempt ended.
    Ended(AttemptEnd),
    /// The command never ran and never will.
    NeverRan,
    /// The shim is dead and left no end record. No process of the job's session is left.
    Lost(LostAttempt),
}

/// An attempt without an end record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostAttempt {
    /// Start record of the main process.
    pub started: StartRecord,
    /// Cause of the loss.
    pub cause: LossCause,
    /// Processes of the job that were left and are now killed.
    pub killed: Vec<u32>,
}

/// A cause for which a shim left no end record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LossCause {
    /// The machine was rebooted.
    Reboot,
    /// The shim was killed.
    Kill,
}

/// Determines the state of the attempt in a folder and resolves it.
///
/// An attempt that was not started becomes void. The remaining processes of an attempt without a
/// shim are killed. Blocks for some seconds if processes die slowly, and at most [`REPLY_TIMEOUT`]
/// for a held lock.
///
/// # Errors
/// [`FindError`]. Nothing is resolved then, and the call can be repeated.
pub fn find(dir: &Path) -> Result<FoundAttempt, FindError> {
    find_until(dir, BootTime::now().after(REPLY_TIMEOUT))
}

/// As [`find`], but waits at most until an instant. If it is past, tries once.
///
/// # Errors
/// As [`find`].
pub fn find_until(dir: &Path, until: BootTime) -> Result<FoundAttempt, FindError> {
    if !dir.exists() {
        return Ok(FoundAttempt::NeverRan);
    }
    let folder = Folder::open(dir)?;
    loop {
        if let Some(end) = folder.read_end()? {
            return Ok(FoundAttempt::Ended(end));
        }
        if let Some(lock) = folder.lock()? {
            return resolve(&folder, &lock, until);
        }
        if let Some(shim) = connect(&folder)? {
            return Ok(FoundAttempt::Alive(shim));
        }
        if BootTime::now() >= until {
            return Err(FindError::Locked { dir: dir.to_owned() });
        }
        thread::sleep(RETRY_INTERVAL);
    }
}

/// Connects to the shim that holds the lock, or returns `None` if it is unreachable.
fn connect(folder: &Folder) -> Result<Option<Shim>, FindError> {
    let Some(identity) = folder.read(files::SHIM)? else { return Ok(None) };
    let Ok(line) = folder.connect().and_then(Connection::new) else { return Ok(None) };
    let dir = || folder.path().to_owned();
    Shim::from_connection(folder, identity, line)
        .map_err(|error| FindError::JobProcesses { dir: dir(), error })
}

/// Resolves an attempt without a shim. The caller holds the lock.
fn resolve(folder: &Folder, lock: &AttemptLock, until: BootTime) -> Result<FoundAttempt, FindError> {
    // A shim may have written its end and exited since the last check.
    if let Some(end) = folder.read_end()? {
        return Ok(FoundAttempt::Ended(end));
    }
    let Some(started) = folder.read::<StartRecord>(files::STARTED)? else {
        folder.void(lock)?;
        return Ok(FoundAttempt::NeverRan);
    };
    let dir = || folder.path().to_owned();
    let boot_id = current_boot().map_err(|error| FindError::JobProcesses { dir: dir(), error })?;
    if boot_id != started.main.boot_id {
        return Ok(FoundAttempt::Lost(LostAttempt { started, cause: LossCause::Reboot, killed: Vec::new() }));
    }
    let killed = JobSession::new(&started, folder.path())
        .kill(until)
        .map_err(|error| FindError::JobProcesses { dir: dir(), error })?;
    match killed {
        KillResult::All(killed) => {
            Ok(FoundAttempt::Lost(LostAttempt { started, cause: LossCause::Kill, killed }))
        }
        KillResult::Survivors(pids) => Err(FindError::Survivors { dir: dir(), pids }),
    }
}
