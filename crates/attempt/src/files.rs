//! The folder of an attempt and the meaning of its files.
//!
//! | file | written | meaning |
//! |---|---|---|
//! | `spec.json` | by the launcher, before the shim exists | specification of the attempt |
//! | `void` | the specification, renamed under the lock | never ran and never will |
//! | `lock` | locked by the shim, and by the runner of a program of the queue, as long as it lives | one of them exists |
//! | `shim.json` | by the shim once it is reachable at `ctl` | identity of the shim |
//! | `relay` | by the program that becomes the command | socket of the relay of an interactive job |
//! | `started.json` | by the shim, durable, before the prolog and the command may run | one of them may have run |
//! | `end.json` | by the shim, when no process is left, also of the epilog | how the attempt ended |
//!
//! No other process sees a partial record, whichever process is killed. Flushes matter only when the power fails, and no
//! process survives that:
//!
//! - Nothing is flushed before the start. A folder without a durable start never ran, whatever is left of it.
//! - The start is flushed with the names of its file and of the folder, so an attempt that may have run is never taken for one
//!   that has not.
//! - The content of the end is flushed before its name exists, so the end is complete or missing. A connected daemon commits the
//!   end at once, and without one its name is flushed, too. If the power fails before either, the attempt is lost by the
//!   reboot, as if the power had failed before the end.
//!
//! > **Architecture invariant:** only the holder of the lock decides about an attempt that has
//! > neither `started.json` nor `void`. A shim may then start the command; any other process may
//! > declare the attempt void. A command therefore runs at most once, whichever process is killed
//! > and at any time.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::boot::StoredInstant;
use crate::end::AttemptEnd;
use crate::identity::Identity;
use crate::time::BootTime;

/// The specification.
pub const SPEC: &str = "spec.json";
/// The specification of an attempt that is void.
pub const VOID: &str = "void";
/// The identity of the shim.
pub const SHIM: &str = "shim.json";
/// The start.
pub const STARTED: &str = "started.json";
/// The end.
pub const END: &str = "end.json";
/// The processors of a resizable job, for its processes: their numbers with commas between them, and a line end.
pub const CPUS: &str = "cpus";
/// The lock.
pub const LOCK: &str = "lock";
/// Preallocated files into which the start and the end are written.
const START_TEMPORARY: &str = "started.preallocated";
const END_TEMPORARY: &str = "end.preallocated";
const CPUS_TEMPORARY: &str = "cpus.new";

/// What is on disk when a record is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Nothing.
    Nothing,
    /// The content. The name follows, and never precedes it.
    Content,
    /// The content, its name and the name of the folder.
    Folder,
}

/// The files of one attempt, by name. The implementation has the effects, and the provided methods their order and content.
///
/// The process may be killed before, in and after any call. A file is then complete under its name or missing. If the power
/// fails, only what was flushed is left for certain.
pub trait Files {
    /// The lock of the attempt. Dropping it and its copies in other processes, or the exit of these, releases it.
    type Lock;

    /// Returns the folder, for messages and for other processes.
    fn path(&self) -> &Path;

    /// Returns the content of a file, or `None` if it does not exist.
    ///
    /// # Errors
    /// The file cannot be read.
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Returns whether a file exists.
    ///
    /// # Errors
    /// The folder cannot be searched.
    fn exists(&self, name: &str) -> io::Result<bool>;

    /// Writes over the content of the file `temporary`, which need not exist, and renames it.
    ///
    /// # Errors
    /// The file may have been written, with or without its new name.
    fn store(&self, name: &str, temporary: &str, content: &[u8], flush: Flush) -> io::Result<()>;

    /// Creates a file with room for a record, where the file system can do that.
    ///
    /// # Errors
    /// The file exists, or the disk is full.
    fn preallocate(&self, name: &str) -> io::Result<()>;

    /// Removes a file. Needs no disk space.
    ///
    /// # Errors
    /// `NotFound` if it does not exist.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Renames a file. Needs no disk space.
    ///
    /// # Errors
    /// `NotFound` if it does not exist.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Flushes all names in the folder.
    ///
    /// # Errors
    /// The names may be on disk or not.
    fn flush(&self) -> io::Result<()>;

    /// Creates the file of the lock, without taking it.
    ///
    /// # Errors
    /// The file cannot be created.
    fn make_lock(&self) -> io::Result<()>;

    /// Takes the lock, or returns `None` if another process holds it.
    ///
    /// # Errors
    /// The file of the lock cannot be created or locked.
    fn take_lock(&self) -> io::Result<Option<Self::Lock>>;

    /// Returns whether a process holds the lock of another attempt, whose folder is beside this one under this name. An attempt
    /// without a folder has none.
    ///
    /// # Errors
    /// The lock cannot be inspected.
    fn is_locked(&self, folder: &str) -> io::Result<bool>;

    /// Returns whether the folder itself has been deleted.
    fn is_removed(&self) -> bool;

    /// Reads a record, or returns `None` if it does not exist.
    ///
    /// # Errors
    /// The record cannot be read, or is damaged.
    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, RecordError> {
        parse(&self.path().join(name), self.load(name))
    }

    /// Writes the processors of the job, for its processes. A reader sees the former ones or these.
    ///
    /// # Errors
    /// The file cannot be written.
    fn write_cpus(&self, cpus: &[u32]) -> io::Result<()> {
        let numbers: Vec<String> = cpus.iter().map(u32::to_string).collect();
        let text = format!("{}\n", numbers.join(","));
        self.store(CPUS, CPUS_TEMPORARY, text.as_bytes(), Flush::Nothing)
    }

    /// Reads the end of the attempt, or returns `None` if it does not exist.
    ///
    /// # Errors
    /// The record cannot be read, or is damaged.
    fn read_end(&self) -> Result<Option<AttemptEnd>, RecordError> {
        let end = self.read::<AttemptEnd>(END)?;
        Ok(end.map(|end| end.or_boot_of(|| self.read(SHIM))))
    }

    /// Returns whether a file exists.
    ///
    /// # Errors
    /// The folder cannot be searched.
    fn has(&self, name: &str) -> Result<bool, RecordError> {
        self.exists(name).map_err(|error| self.failed("look for", name, error))
    }

    /// Writes a record atomically. It is durable once the start is.
    ///
    /// # Errors
    /// The record cannot be written.
    fn write<T: Serialize>(&self, name: &str, record: &T) -> Result<(), RecordError> {
        self.write_from(name, &format!("{name}.new"), record, Flush::Nothing)
    }

    /// Preallocates the files for the start and the end, so that a full disk does not prevent their recording.
    ///
    /// # Errors
    /// The disk is full.
    fn make_room(&self) -> Result<(), RecordError> {
        let preallocate =
            |name| self.preallocate(name).map_err(|error| self.failed("make room in", name, error));
        preallocate(START_TEMPORARY)?;
        preallocate(END_TEMPORARY)
    }

    /// Writes the start durably into the preallocated file.
    ///
    /// # Errors
    /// The record may have been written.
    fn write_start(&self, started: &StartRecord) -> Result<(), RecordError> {
        self.write_from(STARTED, START_TEMPORARY, started, Flush::Folder)
    }

    /// Writes the end into the preallocated file. Its name is durable unless a daemon commits the end.
    ///
    /// # Errors
    /// The record may have been written.
    fn write_end(&self, end: &AttemptEnd, has_daemon: bool) -> Result<(), RecordError> {
        let flush = if has_daemon { Flush::Content } else { Flush::Folder };
        self.write_from(END, END_TEMPORARY, end, flush)
    }

    /// Writes a record over the content of the file `temporary` and renames it.
    ///
    /// # Errors
    /// The record may have been written.
    fn write_from<T: Serialize>(
        &self,
        name: &str,
        temporary: &str,
        record: &T,
        flush: Flush,
    ) -> Result<(), RecordError> {
        let text = serde_json::to_vec(record).map_err(io::Error::from);
        text.and_then(|text| self.store(name, temporary, &text, flush))
            .map_err(|error| self.failed("write", name, error))
    }

    /// Creates the file of the lock, without taking it.
    ///
    /// # Errors
    /// The file cannot be created.
    fn create_lock(&self) -> Result<(), RecordError> {
        self.make_lock().map_err(|error| self.failed("open", LOCK, error))
    }

    /// Takes the lock, or returns `None` if another process holds it.
    ///
    /// # Errors
    /// The lock cannot be taken.
    fn lock(&self) -> Result<Option<Self::Lock>, RecordError> {
        self.take_lock().map_err(|error| self.failed("lock", LOCK, error))
    }

    /// Marks the attempt as void although its start may be recorded. Needs no disk space.
    ///
    /// Only its shim calls this, which has not permitted the command to run.
    ///
    /// # Errors
    /// The start cannot be removed, or the specification not renamed.
    fn void_start(&self, lock: &Self::Lock) -> Result<(), RecordError> {
        match self.remove(STARTED).and_then(|()| self.flush()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.failed("remove", STARTED, error))
            }
            _ => self.void(lock),
        }
    }

    /// Marks the attempt as void.
    ///
    /// The caller holds the lock and has checked that the attempt was not started. Needs no disk space.
    ///
    /// # Errors
    /// The specification cannot be renamed.
    fn void(&self, _lock: &Self::Lock) -> Result<(), RecordError> {
        match self.rename(SPEC, VOID) {
            // Either void already, or the specification was never written and no shim exists.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(|error| self.failed("rename", SPEC, error)),
        }
    }

    /// Returns the error of a record.
    fn failed(&self, what: &'static str, name: &str, error: io::Error) -> RecordError {
        RecordError::Io { what, path: self.path().join(name), error }
    }
}

/// Parses the content of a record that was read from `path`.
///
/// # Errors
/// The record could not be read, or is damaged.
pub fn parse<T: DeserializeOwned>(
    path: &Path,
    content: io::Result<Option<Vec<u8>>>,
) -> Result<Option<T>, RecordError> {
    let read = |error| RecordError::Io { what: "read", path: path.to_owned(), error };
    let damaged = |error| RecordError::Damaged { path: path.to_owned(), error };
    let content = content.map_err(read)?;
    content.map(|text| serde_json::from_slice(&text)).transpose().map_err(damaged)
}

/// A record of the job's main process, written before it runs the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRecord {
    /// The process, which leads the job's session.
    #[serde(flatten)]
    pub main: Identity,
    /// Session of the job.
    pub sid: u32,
    /// Autogroup of the session, which no later session of the same number shares.
    ///
    /// `None` where the kernel has no autogroups.
    pub autogroup: Option<String>,
    /// Start of the process, by the clock of the boot in `main`.
    pub(crate) at: BootTime,
    /// Folder of the attempt's control group, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<PathBuf>,
    /// Time limit of the epilog, if the queue has one. The attempt ends so much later than the last process of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epilog: Option<Duration>,
}

impl StartRecord {
    /// Returns the start of the process.
    pub fn instant(&self) -> StoredInstant {
        StoredInstant::new(self.at, self.main.boot_id.clone())
    }
}

/// An error in a file of the folder.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A file cannot be read or written.
    #[error("cannot {what} {}: {error}", path.display())]
    Io {
        /// Attempted operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the kernel.
        error: io::Error,
    },
    /// The content of a file is invalid.
    #[error("{} is damaged: {error}; restore or remove the folder of the attempt", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Cause with line and column.
        error: serde_json::Error,
    },
}
