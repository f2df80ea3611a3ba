//! The prolog and the epilog of a queue: programs of the operator around each attempt of a job.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::lossless;

/// The programs around an attempt. Its shim runs each at most once, with the rights of the shim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuePrograms {
    /// The complete environment of both.
    #[serde(with = "lossless")]
    pub env: Vec<(OsString, OsString)>,
    /// Runs before the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prolog: Option<QueueProgram>,
    /// Runs when no process of the job is left, before the end is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epilog: Option<QueueProgram>,
}

/// A program of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueProgram {
    /// The file of the program.
    #[serde(with = "lossless")]
    pub path: PathBuf,
    /// The name of the program and its arguments.
    #[serde(with = "lossless")]
    pub argv: Vec<OsString>,
    /// The time after which it is killed.
    pub limit: Duration,
}

/// The place of a program in an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// Before the command.
    Prolog,
    /// After the last process of the job.
    Epilog,
}

/// The reason why a program of a queue failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ProgramFailure {
    /// It could not be started.
    #[error("cannot be run: {error}")]
    NotRun {
        /// The reason.
        error: String,
    },
    /// It exited with this code.
    #[error("exit {0}")]
    Code(i32),
    /// It was killed by this signal.
    #[error("signal {0}")]
    Signal(i32),
    /// It was killed because its time was over.
    #[error("killed after {} s", limit.as_secs_f64())]
    TimeLimit {
        /// Its time.
        limit: Duration,
    },
    /// The window of the job ended before it.
    #[error("the window of the job ended before it")]
    Window,
    /// It was killed with the process that supervises it.
    #[error("killed from outside")]
    Killed,
}

/// The end of a program of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramReport {
    /// The reason of a failure; `None` after exit code 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ProgramFailure>,
    /// The end of its output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

impl QueuePrograms {
    /// Returns one of the programs, if the queue has it.
    pub fn get(&self, kind: ProgramKind) -> Option<&QueueProgram> {
        match kind {
            ProgramKind::Prolog => self.prolog.as_ref(),
            ProgramKind::Epilog => self.epilog.as_ref(),
        }
    }
}

impl ProgramKind {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            ProgramKind::Prolog => "prolog",
            ProgramKind::Epilog => "epilog",
        }
    }
}

impl ProgramReport {
    /// Returns the report of a program without output.
    pub(crate) fn failed(failure: ProgramFailure) -> ProgramReport {
        ProgramReport { failure: Some(failure), output: String::new() }
    }
}

/// Checks that a file is a program that only this process's user and root can change.
///
/// A shim repeats this check immediately before it runs the program. The folders above are checked when the configuration is
/// read.
///
/// # Errors
/// The reason why the program must not be run.
pub fn check_program(path: &Path) -> io::Result<()> {
    const EXECUTABLE: u32 = 0o111;
    const WRITE_OF_OTHERS: u32 = 0o022;
    let refused = |reason: &str| Err(io::Error::other(format!("{}: {reason}", path.display())));
    let file = path
        .metadata()
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    if !file.is_file() || file.mode() & EXECUTABLE == 0 {
        return refused("it is no executable file");
    }
    if ![0, geteuid().as_raw()].contains(&file.uid()) {
        return refused(&format!("it belongs to user {}; give it to root with `chown root`", file.uid()));
    }
    if file.mode() & WRITE_OF_OTHERS != 0 {
        return refused("other users may write to it; remove that permission with `chmod go-w`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[track_caller]
    fn check(mode: u32, expect: Option<&str>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let problem = check_program(&path).err().map(|error| error.to_string());
        match (problem, expect) {
            (None, None) => {}
            (Some(problem), Some(expect)) => assert!(problem.contains(expect), "{problem}"),
            (problem, _) => panic!("{mode:o}: {problem:?}"),
        }
    }

    #[test]
    fn only_an_executable_file_that_others_cannot_change_is_run() {
        check(0o700, None);
        check(0o755, None);
        check(0o644, Some("no executable file"));
        check(0o775, Some("chmod go-w"));
        check(0o757, Some("chmod go-w"));
        assert!(check_program(Path::new("/")).is_err());
        assert!(check_program(Path::new("/no/such/program")).is_err());
    }
}
