//! Retiring an attempt: one record of it is kept until a backup of the state contains its end.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io;
use std::path::Path;

use miserly_marks::mark;

use crate::files::{END, STARTED};

/// The records that prove how an attempt ended, or that it began. The first one present is kept.
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

/// Sets the record of an attempt aside once its end is on disk. Removes the rest of its folder.
///
/// A recovery from a backup that is older than the end finds the record there. So the job does not run twice.
pub fn retire(remains: &impl Remains) {
    let Some(proof) = PROOFS.into_iter().find(|proof| remains.has(proof)) else { return remove(remains) };
    mark!("retired");
    if let Err(error) = reduce(remains, proof).and_then(|()| remains.set_aside()) {
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

/// Removes all files of a folder but one.
fn reduce(remains: &impl Remains, kept: &str) -> io::Result<()> {
    let names = remains.names()?;
    names.iter().filter(|name| *name != kept).try_for_each(|name| remains.remove(name))
}
