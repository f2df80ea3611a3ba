//! Claiming an attempt for a shim.

use std::time::Duration;

use miserly_marks::mark;

use super::host::Host;
use crate::boot::BootId;
use crate::files::{END, Files, RecordError, SHIM, SPEC, STARTED};
use crate::protocol::ShimRefusal;
use crate::spec::{AttemptSpec, SpecRecord};

/// The longest wait for the lock of an attempt without a shim.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// The time between two tries.
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// An attempt that this shim has claimed.
pub(super) struct ClaimedAttempt<F: Files> {
    pub(super) files: F,
    pub(super) spec: AttemptSpec,
    /// Boot of the machine in which this shim runs.
    pub(super) boot: BootId,
    /// Lock of the attempt, held until the shim exits.
    pub(super) lock: F::Lock,
}

/// Claims the attempt unless it is void or was claimed before.
pub(super) fn claim<H: Host>(host: &mut H, files: H::Files) -> Result<ClaimedAttempt<H::Files>, ShimRefusal> {
    let failed = |error: &dyn ToString| ShimRefusal::Begin { error: error.to_string() };
    let lock = lock(host, &files).map_err(|error| failed(&error))?.ok_or(ShimRefusal::Taken)?;
    for record in [STARTED, END, SHIM] {
        if files.has(record).map_err(|error| failed(&error))? {
            mark!("an attempt that has a shim");
            return Err(ShimRefusal::Taken);
        }
    }
    // A void attempt has no specification under this name.
    let SpecRecord { spec, boot_id } =
        files.read(SPEC).map_err(|error| failed(&error))?.ok_or(ShimRefusal::Void)?;
    host.listen(&files).map_err(|error| failed(&error))?;
    let me = host.identity().map_err(|error| failed(&error))?;
    if boot_id.is_some_and(|boot| boot != me.boot_id) {
        mark!("an attempt of an earlier boot");
        return Err(failed(&"its window is of an earlier boot of the machine"));
    }
    // Whatever needs room comes first: a launcher tries again, and a job that has begun cannot.
    files.make_room().map_err(|error| failed(&error))?;
    // Written last, because a reader of this file connects.
    files.write(SHIM, &me).map_err(|error| failed(&error))?;
    mark!("claimed");
    Ok(ClaimedAttempt { files, spec, boot: me.boot_id, lock })
}

/// Takes the lock of an attempt that no shim has claimed, or returns `None`.
///
/// A program that the launcher starts at the same time may hold it for a moment, until it is executed.
fn lock<H: Host>(host: &mut H, files: &H::Files) -> Result<Option<<H::Files as Files>::Lock>, RecordError> {
    let until = host.now().after(LOCK_WAIT);
    loop {
        let lock = files.lock()?;
        if lock.is_some() || files.has(SHIM)? || host.now() >= until {
            return Ok(lock);
        }
        mark!("the lock is held");
        host.pause(LOCK_PAUSE);
    }
}
