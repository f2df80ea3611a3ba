//! Retiring an attempt: its start and its end are kept until a backup of the state contains them.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io;
use std::path::Path;

use miserly_marks::mark;

use crate::files::{END, STARTED};

/// The records that prove how an attempt ended, and when it began.
pub const PROOFS: [&str; 2] = [END, STARTED];

/// The folder of an attempt whose end the daemon has committed. No process uses it any more.
pub trait Remains {
    /// Returns the folder, for messages.
    fn path(&self) -> &Path;

    /// Returns whether a file exists and can be found.
    fn has(&self, name: &str) -> bool;

    /// Returns the names of all files.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn names(&self) -> io::Result<Vec<OsString>>;

    /// Removes a file.
    ///
    /// # Errors
    /// The file cannot be removed.
    fn remove(&self, name: &OsStr) -> io::Result<()>;

    /// Moves the folder to those of ended attempts, at once.
    ///
    /// # Errors
    /// The folder is where it was.
    fn set_aside(&self) -> io::Result<()>;

    /// Removes the folder with its files.
    ///
    /// # Errors
    /// `NotFound` if it does not exist. After any other error some files may be left.
    fn remove_all(&self) -> io::Result<()>;

    /// Warns the administrator.
    fn warn(&self, message: &dyn Display);
}

/// Sets the records of an attempt aside once its end is on disk. Removes the rest of its folder.
///
/// A recovery from a backup that is older than the end finds them there. So the job does not run twice, and its promise is judged by
/// its start.
pub fn retire(remains: &impl Remains) {
    if !PROOFS.into_iter().any(|proof| remains.has(proof)) {
        return remove(remains);
    }
    mark!("retired");
    if let Err(error) = reduce(remains).and_then(|()| remains.set_aside()) {
        mark!("a record is removed early");
        let folder = remains.path().display();
        remains.warn(&format_args!("the record of {folder} is removed early: {error}"));
        remove(remains);
    }
}

/// Removes the folder of an attempt that is over.
fn remove(remains: &impl Remains) {
    if let Err(error) = remains.remove_all()
        && error.kind() != io::ErrorKind::NotFound
    {
        remains.warn(&format_args!("cannot remove {}: {error}", remains.path().display()));
    }
}

/// Removes all files of a folder but its proofs.
fn reduce(remains: &impl Remains) -> io::Result<()> {
    let names = remains.names()?;
    let mut others = names.iter().filter(|name| PROOFS.iter().all(|kept| *name != kept));
    others.try_for_each(|name| remains.remove(name))
}
