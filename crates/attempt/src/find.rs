//! Determines the state of an attempt after a restart of the daemon.

use std::io;
use std::time::Duration;

use miserly_marks::mark;
use serde::{Deserialize, Serialize};

use crate::commands::{Commands, ConnectedShim};
use crate::daemon_host::{DaemonHost, KillResult, ShimOf};
use crate::end::AttemptEnd;
use crate::error::FindError;
use crate::files::{Files, SHIM, STARTED, StartRecord};
use crate::identity::Identity;
use crate::time::BootTime;

/// Interval between attempts to take the lock of a shim that is unreachable because it begins or
/// exits.
///
/// Both take milliseconds, and no event reports them.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// The state of an attempt.
#[derive(Debug)]
pub enum FoundAttempt<S> {
    /// The shim is alive and connected.
    Alive(S),
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

impl<S> FoundAttempt<S> {
    /// Returns the same state with another handle of the shim.
    pub fn map<T>(self, handle: impl FnOnce(S) -> T) -> FoundAttempt<T> {
        match self {
            FoundAttempt::Alive(shim) => FoundAttempt::Alive(handle(shim)),
            FoundAttempt::Ended(end) => FoundAttempt::Ended(end),
            FoundAttempt::NeverRan => FoundAttempt::NeverRan,
            FoundAttempt::Lost(lost) => FoundAttempt::Lost(lost),
        }
    }
}

/// Determines the state of an attempt and resolves it.
///
/// An attempt that was not started becomes void. The remaining processes of an attempt without a
/// shim are killed. Waits at most until an instant. If it is past, tries once.
///
/// # Errors
/// [`FindError`]. Nothing is resolved then, and the call can be repeated.
pub fn find<D: DaemonHost>(host: &mut D, until: BootTime) -> Result<FoundAttempt<ShimOf<D>>, FindError> {
    let Some(files) = host.open()? else {
        mark!("planned: there is no folder");
        return Ok(FoundAttempt::NeverRan);
    };
    loop {
        if let Some(end) = files.read_end()? {
            mark!("ended: the end is recorded");
            return Ok(FoundAttempt::Ended(end));
        }
        if let Some(lost) = lost_by_reboot(host, &files)? {
            return Ok(FoundAttempt::Lost(lost));
        }
        if let Some(lock) = files.lock()? {
            return resolve(host, &files, &lock, until);
        }
        if let Some(shim) = connect(host, &files)? {
            mark!("alive: its shim is connected");
            return Ok(FoundAttempt::Alive(shim));
        }
        if host.now() >= until {
            mark!("locked: its shim does not answer");
            return Err(FindError::Locked { dir: files.path().to_owned() });
        }
        host.pause(RETRY_INTERVAL);
    }
}

/// Connects to the shim that holds the lock, or returns `None` if it is unreachable.
fn connect<D: DaemonHost>(host: &mut D, files: &D::Files) -> Result<Option<ShimOf<D>>, FindError> {
    let Some(identity) = files.read::<Identity>(SHIM)? else { return Ok(None) };
    let Ok(connection) = host.connect(files) else { return Ok(None) };
    let process = host.process(&identity).map_err(|error| unknown_processes(files, error))?;
    let commands = Commands::new(connection, 0);
    Ok(process.map(|process| ConnectedShim { identity, process, commands }))
}

/// Resolves an attempt without a shim. The caller holds the lock.
fn resolve<D: DaemonHost>(
    host: &mut D,
    files: &D::Files,
    lock: &<D::Files as Files>::Lock,
    until: BootTime,
) -> Result<FoundAttempt<ShimOf<D>>, FindError> {
    // A shim may have written its end and exited since the last check.
    if let Some(end) = files.read_end()? {
        mark!("ended meanwhile");
        return Ok(FoundAttempt::Ended(end));
    }
    let Some(started) = files.read::<StartRecord>(STARTED)? else {
        mark!("created or claimed: it never ran");
        files.void(lock)?;
        return Ok(FoundAttempt::NeverRan);
    };
    match host.kill_job(files, &started, until).map_err(|error| unknown_processes(files, error))? {
        KillResult::All(killed) => {
            mark!("lost with its shim");
            Ok(FoundAttempt::Lost(LostAttempt { started, cause: LossCause::Kill, killed }))
        }
        KillResult::Survivors(pids) => {
            mark!("lost, and its processes live");
            Err(FindError::Survivors { dir: files.path().to_owned(), pids })
        }
    }
}

/// Returns the loss of an attempt that started before the machine booted. Nothing of it lives, so its lock, for which a disk may
/// have no room, is not needed.
fn lost_by_reboot<D: DaemonHost>(host: &mut D, files: &D::Files) -> Result<Option<LostAttempt>, FindError> {
    let Some(started) = files.read::<StartRecord>(STARTED)? else { return Ok(None) };
    let boot = host.boot().map_err(|error| unknown_processes(files, error))?;
    if boot == started.main.boot_id {
        return Ok(None);
    }
    mark!("lost by a reboot");
    Ok(Some(LostAttempt { started, cause: LossCause::Reboot, killed: Vec::new() }))
}

fn unknown_processes(files: &impl Files, error: io::Error) -> FindError {
    FindError::JobProcesses { dir: files.path().to_owned(), error }
}
