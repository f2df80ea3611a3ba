//! Files that are whole or not there.

use std::collections::BTreeSet;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tempfile::NamedTempFile;

/// Temporary files that are being written, for [`remove_unfinished`].
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A file that takes its name only when it is complete: written beside it, then renamed over it.
pub struct AtomicFile {
    temporary: NamedTempFile,
    path: PathBuf,
}

impl AtomicFile {
    /// How the name of a file begins that is being written.
    pub const PREFIX: &str = ".miserly-";

    /// Starts a file that will be `path`.
    ///
    /// # Errors
    /// If its folder cannot be written to, or `path` is a folder itself.
    pub fn create(path: &Path) -> io::Result<(AtomicFile, BufWriter<File>)> {
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        // As open(2) would make it: the user's umask decides.
        builder.prefix(AtomicFile::PREFIX).permissions(Permissions::from_mode(0o666));
        // Made and noted in one: an interrupt finds it noted, or not there. Without the temporary name, which would
        // tell the user nothing.
        let made = unfinished(|paths| {
            let made = builder.tempfile_in(folder);
            paths.extend(made.as_ref().ok().map(|made| made.path().to_owned()));
            made
        });
        let temporary = made.map_err(|error| {
            let (kind, folder) = (error.kind(), folder.display());
            let message = match kind {
                io::ErrorKind::NotFound => format!("there is no folder {folder}"),
                _ => format!("cannot write to the folder {folder}: {kind}"),
            };
            io::Error::new(kind, message)
        })?;
        let output = BufWriter::with_capacity(1 << 16, temporary.as_file().try_clone()?);
        Ok((AtomicFile { temporary, path: path.to_owned() }, output))
    }

    /// Gives the file its name, in place of whatever had it before.
    ///
    /// # Errors
    /// If what is left cannot be written, or the file cannot be renamed; the old file is untouched then.
    pub fn commit(self, mut output: BufWriter<File>) -> io::Result<()> {
        output.flush()?;
        self.temporary.as_file().sync_all()?;
        let temporary = self.temporary.path().to_owned();
        self.temporary.persist(&self.path).map_err(|error| error.error)?;
        unfinished(|paths| paths.remove(&temporary));
        Ok(())
    }
}

/// Removes what is being written, before a program that was interrupted exits. From then on no file is begun: whoever
/// tries waits for the end.
pub fn remove_unfinished() {
    let mut paths = UNFINISHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for path in std::mem::take(&mut *paths) {
        // Nobody is left to tell if it cannot be removed.
        let _ = std::fs::remove_file(path);
    }
    std::mem::forget(paths);
}

fn unfinished<T>(change: impl FnOnce(&mut BTreeSet<PathBuf>) -> T) -> T {
    let mut paths = UNFINISHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    change(&mut paths)
}
