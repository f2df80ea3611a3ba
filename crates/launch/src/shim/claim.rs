//! Claiming an attempt for a shim.

use miserly_attempt::{
    AttemptSpec, BootId, BootTime, Files as _, RecordError, ShimRefusal, SpecRecord, files,
};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use rustix::fs::Mode;
use rustix::process::umask;
use rustix::stdio::dup2_stdin;

use crate::clock::MachineClock as _;
use crate::connection::Connection;
use crate::folder::{AttemptLock, Folder};
use crate::handle::REPLY_TIMEOUT;
use crate::identity;
use crate::shortage::LaunchStep;
use crate::wait;

/// The longest wait for the lock of an attempt without a shim.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// The time between two tries.
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// An attempt that this shim has claimed.
pub(super) struct ClaimedAttempt {
    pub(super) folder: Folder,
    pub(super) spec: AttemptSpec,
    /// Boot of the machine in which this shim runs.
    pub(super) boot: BootId,
    pub(super) listener: UnixListener,
    /// Lock of the attempt, held until the shim exits.
    pub(super) lock: AttemptLock,
}

/// Claims the attempt unless it is void or was claimed before.
pub(super) fn claim(dir: &Path) -> Result<ClaimedAttempt, ShimRefusal> {
    umask(Mode::RWXG | Mode::RWXO);
    let failed = |error: &dyn ToString| ShimRefusal::Begin { error: error.to_string() };
    let folder = Folder::open(dir).map_err(|error| failed(&error))?;
    let lock = lock(&folder).map_err(|error| failed(&error))?.ok_or(ShimRefusal::Taken)?;
    LaunchStep::Claim.pass(dir).map_err(|error| failed(&error))?;
    for record in [files::STARTED, files::END, files::SHIM] {
        if folder.has(record).map_err(|error| failed(&error))? {
            return Err(ShimRefusal::Taken);
        }
    }
    // A void attempt has no specification under this name.
    let SpecRecord { spec, boot_id } =
        folder.read(files::SPEC).map_err(|error| failed(&error))?.ok_or(ShimRefusal::Void)?;
    let listener = nonblocking_listener(&folder).map_err(|error| failed(&error))?;
    let me = identity::of(std::process::id()).map_err(|error| failed(&error))?;
    if boot_id.is_some_and(|boot| boot != me.boot_id) {
        return Err(failed(&"its window is of an earlier boot of the machine"));
    }
    // Whatever needs room comes first: a launcher tries again, and a job that has begun cannot.
    folder.make_room().map_err(|error| failed(&error))?;
    // Written last, because a reader of this file connects.
    folder.write(files::SHIM, &me).map_err(|error| failed(&error))?;
    Ok(ClaimedAttempt { folder, spec, boot: me.boot_id, listener, lock })
}

/// Takes the lock of an attempt that no shim has claimed, or returns `None`.
///
/// A program that the launcher starts at the same time may hold it for a moment, until it is executed.
fn lock(folder: &Folder) -> Result<Option<AttemptLock>, RecordError> {
    let until = BootTime::now().after(LOCK_WAIT);
    loop {
        let lock = folder.lock()?;
        if lock.is_some() || folder.has(files::SHIM)? || BootTime::now() >= until {
            return Ok(lock);
        }
        std::thread::sleep(LOCK_PAUSE);
    }
}

fn nonblocking_listener(folder: &Folder) -> io::Result<UnixListener> {
    let listener = folder.listen()?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Returns the connection on standard input, or `None` if no launcher started this shim.
pub(super) fn launcher_connection() -> io::Result<Option<Connection>> {
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    if stream.peer_addr().is_err() {
        return Ok(None);
    }
    // The connection must close when its only descriptor is dropped.
    dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Connection::new(stream).map(Some)
}

/// Waits until the launcher has opened the pidfd of this process.
///
/// The wait also ends if the launcher dies, because its connection closes.
pub(super) fn wait_for_launcher(launcher: &Connection) -> io::Result<()> {
    wait::readable(&[launcher.as_fd()], BootTime::now().after(REPLY_TIMEOUT)).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_for_a_moment_is_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::create(&place.path().join("1.1")).unwrap();
        let held = folder.lock().unwrap().unwrap();
        let moment = std::thread::spawn(move || {
            std::thread::sleep(LOCK_PAUSE * 20);
            drop(held);
        });
        let taken = lock(&folder).unwrap();
        assert!(taken.is_some());
        moment.join().unwrap();
        // A shim that has claimed the attempt holds it until its end.
        folder.write(files::SHIM, &identity::of(std::process::id()).unwrap()).unwrap();
        assert!(lock(&folder).unwrap().is_none());
    }
}
