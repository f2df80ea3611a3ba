//! The folder of an experiment's results.
//!
//! ```text
//! DIR/experiment.toml      the file that was run
//! DIR/index.json           the runs and the logs, with their keys and checksums
//! DIR/runs/KEY.json        one per run
//! DIR/traces/NAME.json     one per log: its description
//! DIR/jobs/KEY.csv         one per run, where it was asked for
//! DIR/results.csv          one row per run
//! DIR/slurm/               the output of tasks, where runs are made on a cluster
//! ```

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use miserly_report::AtomicFile;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::axes::Axes;
use super::error::ExperimentError;

/// The content of the folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Index {
    /// The version of the program.
    pub version: String,
    /// The checksum of the sources that a run goes through.
    pub sources: String,
    /// The command that makes these results again.
    pub command: String,
    /// The name of the experiment file.
    pub file: String,
    /// The logs.
    pub traces: Vec<IndexedTrace>,
    /// The runs.
    pub runs: Vec<IndexedRun>,
}

/// A log of the results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IndexedTrace {
    /// Its name in the experiment.
    pub name: String,
    /// The SHA-256 of its file.
    pub sha256: Option<String>,
    /// Why it is missing, if it is.
    pub missing: Option<String>,
}

/// A run of the results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IndexedRun {
    /// The values of its axes.
    pub axes: Axes,
    /// The key of its result; empty where the log is missing.
    pub key: String,
}

/// The folders below.
const PARTS: [&str; 4] = ["runs", "traces", "jobs", "charts"];

/// The folder of the tasks of a cluster that make runs.
pub const CLUSTER: &str = "slurm";

/// A folder of results.
pub struct Store {
    folder: PathBuf,
    /// Held while runs are written, so that there is one writer.
    _lock: Option<File>,
}

impl Store {
    /// Opens the results in that folder, which is made if it is missing.
    ///
    /// It is locked for as long as the store lives. Unfinished files of a killed run are removed.
    ///
    /// # Errors
    /// If it cannot be made, holds something else, or another run of an experiment is using it.
    pub fn create(folder: &Path) -> Result<Store, ExperimentError> {
        if is_foreign(folder) {
            let problem = "the folder has other files and no results; give an empty or new folder with -o";
            return Err(ExperimentError::io(folder)(io::Error::other(problem)));
        }
        for part in PARTS {
            let path = folder.join(part);
            fs::create_dir_all(&path).map_err(ExperimentError::io(path))?;
        }
        let lock = locked(folder).map_err(ExperimentError::io(folder))?;
        for part in PARTS {
            let path = folder.join(part);
            // On a cluster, other processes may be writing.
            let age = if folder.join(CLUSTER).is_dir() { Duration::from_hours(1) } else { Duration::ZERO };
            sweep(&path, age).map_err(ExperimentError::io(path))?;
        }
        Ok(Store { folder: folder.to_owned(), _lock: Some(lock) })
    }

    /// Opens the results in an existing folder, for one of several writers of runs.
    ///
    /// # Errors
    /// If it is not the folder of an experiment.
    pub fn shared(folder: &Path) -> Result<Store, ExperimentError> {
        if folder.join(PARTS[0]).is_dir() {
            return Ok(Store::open(folder));
        }
        let problem = "no experiment has its results there: make the folder by a call without --part";
        Err(ExperimentError::io(folder)(io::Error::other(problem)))
    }

    /// Opens the results in an existing folder.
    pub fn open(folder: &Path) -> Store {
        Store { folder: folder.to_owned(), _lock: None }
    }

    /// Returns the path of a file of the folder.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file of the folder, whole or not at all, and makes the folders on its way.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, name: impl AsRef<Path>, bytes: &[u8]) -> Result<(), ExperimentError> {
        let path = self.path(name);
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
            AtomicFile::write(&path, |output| output.write_all(bytes))
        };
        write().map_err(ExperimentError::io(&path))
    }

    /// Writes a JSON document, with a line end.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_json(
        &self,
        name: impl AsRef<Path>,
        document: &impl Serialize,
    ) -> Result<(), ExperimentError> {
        let mut text = serde_json::to_vec_pretty(document)
            .map_err(|error| ExperimentError::Io { path: self.path(name.as_ref()), error: error.into() })?;
        text.push(b'\n');
        self.write(name, &text)
    }

    /// Reads a file of the folder.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&self, name: impl AsRef<Path>) -> Result<String, ExperimentError> {
        let path = self.path(name);
        fs::read_to_string(&path).map_err(ExperimentError::io(path))
    }

    /// Reads a JSON document.
    ///
    /// # Errors
    /// If it cannot be read, or is damaged.
    pub fn read_json<T: serde::de::DeserializeOwned>(
        &self,
        name: impl AsRef<Path>,
    ) -> Result<T, ExperimentError> {
        let text = self.read(name.as_ref())?;
        serde_json::from_str(&text)
            .map_err(|error| ExperimentError::Damaged { path: self.path(name), problem: error.to_string() })
    }

    /// Returns the file of the result of a run.
    pub fn run(key: &str) -> PathBuf {
        Path::new("runs").join(format!("{key}.json"))
    }

    /// Returns whether the run has been made: its result is there, and is a whole document of that key.
    pub fn has(&self, key: &str, jobs: bool) -> bool {
        let kept = self.read_json::<Value>(Store::run(key));
        let whole = kept.is_ok_and(|kept| kept.get("key").and_then(Value::as_str) == Some(key));
        whole && (!jobs || self.path(Store::jobs(key)).exists())
    }

    /// Returns the file of the jobs of a run.
    pub fn jobs(key: &str) -> PathBuf {
        Path::new("jobs").join(format!("{key}.csv"))
    }

    /// Returns the file of the description of a log.
    pub fn trace(name: &str) -> PathBuf {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
        Path::new("traces").join(format!("{}.json", name.chars().map(plain).collect::<String>()))
    }
}

/// Returns whether a folder has files that are not of an experiment, and must not be overwritten.
fn is_foreign(folder: &Path) -> bool {
    let filled = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    filled && !folder.join("runs").is_dir()
}

/// Locks a folder against other writers; the lock goes with the process, however that ends.
fn locked(folder: &Path) -> io::Result<File> {
    let folder = File::open(folder)?;
    match folder.try_lock() {
        Ok(()) => Ok(folder),
        Err(TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another experiment is writing to this folder; wait for it, or give another folder with -o",
        )),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes the files that were never finished, and not changed for this time.
fn sweep(folder: &Path, age: Duration) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let ours = entry.file_name().to_string_lossy().starts_with(AtomicFile::PREFIX);
        let is_old = || {
            let changed = entry.metadata()?.modified()?;
            io::Result::Ok(changed.elapsed().unwrap_or_default() >= age)
        };
        if ours && entry.file_type()?.is_file() && is_old()? {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
