//! One daemon for one state.

use std::fs::{DirBuilder, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::error::StoreError;

/// How often a lock is tried that a process left behind which has gone, and how long it is waited in between.
const TRIES: u32 = 100;
const BETWEEN: Duration = Duration::from_millis(10);

/// The right to write a state. The kernel takes it back when the process has gone, however it goes.
pub(super) struct Lock(File);

impl Lock {
    /// Takes the lock of a state's folder, which is made if it is not there, for its owner alone.
    pub(super) fn take(folder: &Path) -> Result<Lock, StoreError> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(StoreError::io(folder))?;
        let path = folder.join("lock");
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path).map_err(StoreError::io(&path))?;
        let mut tries = 0;
        while let Err(errno) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            let pid = holder(&mut file);
            tries += 1;
            if errno != Errno::WOULDBLOCK {
                return Err(StoreError::io(&path)(errno.into()));
            } else if tries == TRIES || !pid.is_some_and(has_gone) {
                return Err(StoreError::Locked { folder: folder.display().to_string(), pid });
            }
            // It was killed while it was about to run another program: that still has the file, for a moment.
            std::thread::sleep(BETWEEN);
        }
        // Only a message needs the number: a full disk must not keep the daemon from looking after its jobs.
        let _ =
            file.set_len(0).and_then(|()| file.write_all_at(std::process::id().to_string().as_bytes(), 0));
        Ok(Lock(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // At once, whoever else may still have the file for a moment. If it fails the kernel sees to it.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// The process that has written its number; none while it is just about to.
fn holder(file: &mut File) -> Option<i32> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text)).ok()?;
    text.trim().parse().ok()
}

fn has_gone(pid: i32) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}
