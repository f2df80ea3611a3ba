//! Errors of the store, and the parts of a state that can be damaged.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An error of opening, reading or writing a state.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has the state.
    #[error("the state in {folder} is in use by {}; stop that daemon, or give this one a state folder of its own", process(*.pid))]
    Locked {
        /// The state folder.
        folder: String,
        /// The process, if it is known.
        pid: Option<i32>,
    },
    /// Other users could change the state.
    #[error("the state cannot be trusted: {0}")]
    Folder(#[from] crate::FolderError),
    /// Some of the state differs from the last commit.
    #[error("the state is damaged:{}\nstart with --recover: it keeps the damaged files and restores from them and from the newest backup", list(.0))]
    Damaged(Vec<Damage>),
    /// A later version of this program wrote the state.
    #[error(
        "the state in {folder} was made by version {version} and has format {found}; this is version {}, which reads formats up to {known}: use version {version} or a newer one",
        env!("CARGO_PKG_VERSION")
    )]
    TooNew {
        /// The state folder.
        folder: String,
        /// The version of the program that wrote it.
        version: String,
        /// The format of the state.
        found: u32,
        /// The latest format that this version reads.
        known: u32,
    },
    /// The disk rejected a write. Nothing was changed, and the store can still be used.
    #[error("the state cannot be written: the disk is full, over quota, or failing; nothing was changed")]
    Full,
    /// A backup would leave the daemon too little space.
    #[error(
        "{path} has {available} bytes free; a backup needs {needed}, and as much again is left to the daemon"
    )]
    NoRoom {
        /// The folder of the backups.
        path: String,
        /// The expected size of the backup.
        needed: u64,
        /// The free bytes.
        available: u64,
    },
    /// A file or folder cannot be used.
    #[error("{path}: {source}")]
    Io {
        /// The path.
        path: String,
        /// The error of the system.
        source: io::Error,
    },
    /// `SQLite` fails for another reason. Whether a commit is on disk is unknown until the state is
    /// reopened.
    #[error("the state's database fails: {0}")]
    Sqlite(#[source] rusqlite::Error),
}

impl StoreError {
    /// Returns a conversion from a system error about this path.
    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.into().display().to_string();
        move |source| StoreError::Io { path, source }
    }

    /// Returns the error of a write to this path that changed nothing.
    pub(super) fn write(path: &Path, error: io::Error) -> StoreError {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full,
            _ => StoreError::io(path)(error),
        }
    }

    /// Returns the error for one damaged part.
    pub(super) fn damaged(site: DamageSite, problem: impl Into<String>) -> StoreError {
        StoreError::Damaged(vec![Damage::new(site, problem)])
    }
}

impl From<Damage> for StoreError {
    fn from(damage: Damage) -> StoreError {
        StoreError::Damaged(vec![damage])
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        use rusqlite::ErrorCode::{DatabaseCorrupt, DiskFull, NotADatabase};
        let code = error.sqlite_error().map(|error| (error.code, error.extended_code));
        match code {
            Some((DatabaseCorrupt | NotADatabase, _)) => {
                StoreError::damaged(DamageSite::Structure, error.to_string())
            }
            // An exhausted quota is a write error. The frame of the commit was not written.
            Some((DiskFull, _) | (_, rusqlite::ffi::SQLITE_IOERR_WRITE)) => StoreError::Full,
            _ => StoreError::Sqlite(error),
        }
    }
}

/// A part of the state that differs from the last commit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Damage {
    /// The damaged part.
    pub site: DamageSite,
    /// The problem.
    pub problem: String,
}

impl Damage {
    pub(super) fn new(site: DamageSite, problem: impl Into<String>) -> Damage {
        Damage { site, problem: problem.into() }
    }
}

/// A part of a state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DamageSite {
    /// The summary of the last commit, or the file beside the database that repeats it.
    Mark,
    /// The structure of the database, or its write-ahead log.
    Structure,
    /// A table, by name.
    Table(&'static str),
    /// The row of this job.
    Job(i64),
    /// These journal lines, first and last.
    Lines(i64, i64),
    /// The segment of the journal with these lines, first and last.
    Segment(i64, i64),
    /// A named value.
    Meta(String),
    /// These commits, first and last.
    Commits(i64, i64),
}

impl fmt::Display for DamageSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DamageSite::Mark => f.write_str("the mark of the last commit"),
            DamageSite::Structure => f.write_str("the database"),
            DamageSite::Table(name) => write!(f, "the table {name}"),
            DamageSite::Job(number) => write!(f, "job {number}"),
            DamageSite::Lines(first, last) if first == last => write!(f, "journal line {first}"),
            DamageSite::Lines(first, last) => write!(f, "journal lines {first} to {last}"),
            DamageSite::Segment(first, last) => write!(f, "the journal's segment of lines {first} to {last}"),
            DamageSite::Meta(key) => write!(f, "the value {key}"),
            DamageSite::Commits(first, last) if first == last => write!(f, "commit {first}"),
            DamageSite::Commits(first, last) => write!(f, "commits {first} to {last}"),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.site, self.problem)
    }
}

/// The most damages that a message lists.
const LISTED: usize = 10;

fn list(damages: &[Damage]) -> String {
    let mut text = String::new();
    for damage in damages.iter().take(LISTED) {
        text.push_str(&format!("\n  {damage}"));
    }
    if damages.len() > LISTED {
        text.push_str(&format!("\n  and {} more", damages.len() - LISTED));
    }
    text
}

fn process(pid: Option<i32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}
