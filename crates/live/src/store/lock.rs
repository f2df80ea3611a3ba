//! One daemon for one state.

use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::error::StoreError;

/// The right to write a state. The kernel takes it back when the process has gone, however it goes.
pub(super) struct Lock {
    /// The lock is on this open file, and goes with it.
    _file: File,
}

impl Lock {
    /// Takes the lock of a state's folder, which is made if it is not there, for its owner alone.
    pub(super) fn take(folder: &Path) -> Result<Lock, StoreError> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(StoreError::io(folder))?;
        let path = folder.join("lock");
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path).map_err(StoreError::io(&path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(StoreError::Locked {
                    folder: folder.display().to_string(),
                    pid: holder(&mut file),
                });
            }
            Err(errno) => return Err(StoreError::io(&path)(errno.into())),
        }
        // Only a message needs the number: a full disk must not keep the daemon from looking after its jobs.
        let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Lock { _file: file })
    }
}

/// The process that has written its number; none while it is just about to.
fn holder(file: &mut File) -> Option<i32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
