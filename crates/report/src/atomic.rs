//! Files that are written completely or not at all.

use std::collections::BTreeSet;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tempfile::NamedTempFile;

/// Temporary files in use, for [`remove_unfinished`].
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A file that is written under a temporary name in the same folder and renamed when complete.
///
/// Of a link, that is the file to which it points. A device or a pipe is written as it is: it cannot be replaced.
pub struct AtomicFile {
    /// `None` for a device or a pipe.
    temporary: Option<NamedTempFile>,
    path: PathBuf,
}

impl AtomicFile {
    /// Prefix of temporary file names.
    pub const PREFIX: &str = ".miserly-";

    /// Creates the temporary file for `path`.
    ///
    /// # Errors
    /// The folder is not writable, or `path` is a folder or `-`, which names standard output.
    pub fn create(path: &Path) -> io::Result<(AtomicFile, BufWriter<File>)> {
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if path == Path::new("-") {
            let problem =
                "- is standard output, which is not possible here; give a file, or ./- for one of that name";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let path = &if path.is_symlink() { path.canonicalize()? } else { path.to_owned() };
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            let output = BufWriter::new(File::options().write(true).open(path)?);
            return Ok((AtomicFile { temporary: None, path: path.clone() }, output));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        // The mode is that of `open(2)`: the user's umask applies.
        builder.prefix(AtomicFile::PREFIX).permissions(Permissions::from_mode(0o666));
        // The file is created and registered under one lock, so an interrupt finds both or neither.
        // The error message omits the temporary name, which is meaningless to users.
        let made = unfinished(|paths| {
            let made = builder.tempfile_in(folder);
            paths.extend(made.as_ref().ok().map(|made| made.path().to_owned()));
            made
        });
        let temporary = made.map_err(|error| {
            let (kind, folder) = (error.kind(), folder.display());
            let message = match kind {
                io::ErrorKind::NotFound => format!("the folder {folder} does not exist"),
                _ => format!("cannot write to the folder {folder}: {kind}"),
            };
            io::Error::new(kind, message)
        })?;
        let output = BufWriter::with_capacity(1 << 16, temporary.as_file().try_clone()?);
        Ok((AtomicFile { temporary: Some(temporary), path: path.clone() }, output))
    }

    /// Writes a file with `write`, and gives it its name when it is complete.
    ///
    /// # Errors
    /// See [`create`](AtomicFile::create) and [`commit`](AtomicFile::commit), or `write` fails.
    pub fn write(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
        let (file, mut output) = AtomicFile::create(path)?;
        write(&mut output)?;
        file.commit(output)
    }

    /// Renames the file to its final name and replaces an existing file.
    ///
    /// # Errors
    /// The remaining data cannot be written, or the rename fails. An existing file is then
    /// unchanged.
    pub fn commit(self, mut output: BufWriter<File>) -> io::Result<()> {
        output.flush()?;
        let Some(file) = self.temporary else { return Ok(()) };
        file.as_file().sync_all()?;
        let temporary = file.path().to_owned();
        file.persist(&self.path).map_err(|error| error.error)?;
        unfinished(|paths| paths.remove(&temporary));
        Ok(())
    }
}

/// Deletes all temporary files before an interrupted program exits.
///
/// Later calls of [`AtomicFile::create`] block until the exit.
pub fn remove_unfinished() {
    let mut paths = UNFINISHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for path in std::mem::take(&mut *paths) {
        // A failed deletion cannot be reported at this point.
        let _ = std::fs::remove_file(path);
    }
    std::mem::forget(paths);
}

fn unfinished<T>(change: impl FnOnce(&mut BTreeSet<PathBuf>) -> T) -> T {
    let mut paths = UNFINISHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    change(&mut paths)
}
