//! The lock that gives one process the state.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::error::StoreError;
use crate::folder::{self, NO_LINK};

/// The number of tries at a lock that a dead process still holds.
const TRIES: u32 = 100;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// The right to write a state. The kernel releases it when the process ends.
pub(super) struct StateLock(File);

impl StateLock {
    /// Locks a state folder. Creates the folder with mode 0700 if it is missing.
    pub(super) fn take(folder: &Path) -> Result<StateLock, StoreError> {
        folder::open(folder, folder::Use::State)?;
        for part in ["", "store", "backups"] {
            folder::check_content(&folder.join(part))?;
        }
        let path = folder.join("lock");
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(NO_LINK);
        let mut file = options.open(&path).map_err(StoreError::io(&path))?;
        let mut tries = 0;
        while let Err(errno) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            let pid = holder(&mut file);
            tries += 1;
            if errno != Errno::WOULDBLOCK {
                return Err(StoreError::io(&path)(errno.into()));
            } else if tries == TRIES || !pid.is_some_and(is_dead) {
                return Err(StoreError::Locked { folder: folder.display().to_string(), pid });
            }
            // It was killed between fork and exec of a shim: the child holds the file for a moment.
            std::thread::sleep(PAUSE);
        }
        // Only a message uses the number: a full disk must not stop the daemon.
        let _ =
            file.set_len(0).and_then(|()| file.write_all_at(std::process::id().to_string().as_bytes(), 0));
        Ok(StateLock(file))
    }
}

impl Drop for StateLock {
    fn drop(&mut self) {
        // Explicit, because a child may still hold the file. The kernel covers a failure.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Returns the process that wrote its number. It is absent for a moment after the lock was taken.
fn holder(file: &mut File) -> Option<i32> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text)).ok()?;
    text.trim().parse().ok()
}

fn is_dead(pid: i32) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}
