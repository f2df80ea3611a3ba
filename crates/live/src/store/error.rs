//! What can be wrong with a state, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a state cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has it.
    #[error("the state in {folder} is in use by {}; stop that daemon, or give this one a state folder of its own", process(*.pid))]
    Locked {
        /// The state's folder.
        folder: String,
        /// The process, if it has said so.
        pid: Option<i32>,
    },
    /// Something is not as it was written.
    #[error("the state is damaged:{}\nstart with --recover: it sets the damaged files aside and keeps all that is whole", list(.0))]
    Damaged(Vec<Damage>),
    /// A later version of this program wrote it.
    #[error(
        "the state in {folder} has format {found}, and this version knows formats up to {known}; use a newer miserly"
    )]
    TooNew {
        /// The state's folder.
        folder: String,
        /// The format that it has.
        found: u32,
        /// The latest format that is known.
        known: u32,
    },
    /// Nothing more can be written. What was to be written is not there, and what was there is whole; it may be tried again.
    #[error(
        "the state cannot be written: the disk is full, a quota is used up, or it fails; nothing was changed"
    )]
    Full,
    /// A file or folder cannot be used.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// `SQLite` fails for another reason. After a commit nobody knows whether the batch is on disk: open the state again to see.
    #[error("the state's database fails: {0}")]
    Sqlite(#[source] rusqlite::Error),
}

impl StoreError {
    /// An error of the system, with the path that it is about.
    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.into().display().to_string();
        move |source| StoreError::Io { path, source }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        use rusqlite::ErrorCode::{DatabaseCorrupt, DiskFull, NotADatabase};
        let code = error.sqlite_error().map(|error| (error.code, error.extended_code));
        match code {
            Some((DatabaseCorrupt | NotADatabase, _)) => {
                StoreError::Damaged(vec![Damage::new(Place::Structure, error.to_string())])
            }
            // What a used-up quota looks like. The commit's frame was not written, so there is no commit.
            Some((DiskFull, _) | (_, rusqlite::ffi::SQLITE_IOERR_WRITE)) => StoreError::Full,
            _ => StoreError::Sqlite(error),
        }
    }
}

/// One thing that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Damage {
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub what: String,
}

impl Damage {
    pub(super) fn new(place: Place, what: impl Into<String>) -> Damage {
        Damage { place, what: what.into() }
    }
}

/// What damage touches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The mark, or the file beside the database that repeats it.
    Mark,
    /// The database's own structures, or its log.
    Structure,
    /// A table as a whole, by name.
    Table(&'static str),
    /// The row of this job.
    Job(i64),
    /// This line of the journal.
    Line(i64),
    /// A named value; its number, where its name cannot be read.
    Meta(String),
    /// All that was written by these commits, first and last.
    Commits(i64, i64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Mark => f.write_str("the mark of the last commit"),
            Place::Structure => f.write_str("the database"),
            Place::Table(name) => write!(f, "the table {name}"),
            Place::Job(number) => write!(f, "job {number}"),
            Place::Line(number) => write!(f, "journal line {number}"),
            Place::Meta(key) => write!(f, "the value {key}"),
            Place::Commits(first, last) if first == last => write!(f, "commit {first}"),
            Place::Commits(first, last) => write!(f, "commits {first} to {last}"),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// How many damages a message names.
const NAMED: usize = 10;

fn list(damages: &[Damage]) -> String {
    let mut text = String::new();
    for damage in damages.iter().take(NAMED) {
        text.push_str(&format!("\n  {damage}"));
    }
    if damages.len() > NAMED {
        text.push_str(&format!("\n  and {} more", damages.len() - NAMED));
    }
    text
}

fn process(pid: Option<i32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}
