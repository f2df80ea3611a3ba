//! Real logs, which are not part of the repository.

use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::Requirement;

/// The folder of real logs that `MISERLY_TRACES` names.
#[derive(Clone, Debug)]
pub struct Traces(PathBuf);

impl Traces {
    /// Returns the folder. Without one, reports a skip and returns `None`.
    ///
    /// # Panics
    /// If `MISERLY_TRACES` is not a folder. If it is not set and `MISERLY_REQUIRE_TRACES` is 1.
    #[track_caller]
    pub fn find() -> Option<Traces> {
        let folder = env::var_os("MISERLY_TRACES").map(PathBuf::from);
        let met = Requirement::Traces.is_met(folder.is_some(), "MISERLY_TRACES names no folder of real logs");
        let traces = folder.filter(|_| met).map(Traces)?;
        assert!(traces.0.is_dir(), "MISERLY_TRACES names no folder: {}", traces.0.display());
        Some(traces)
    }

    /// Returns the path of the folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Returns all logs of the folder (`*.swf.gz` and `*.swf`), by name.
    ///
    /// # Panics
    /// If the folder cannot be read or has no log.
    #[track_caller]
    pub fn all(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).expect("MISERLY_TRACES names a folder that can be read");
        let paths = entries.map(|entry| entry.expect("an entry that can be read").path());
        let is_log = |path: &PathBuf| [".swf", ".swf.gz"].iter().any(|end| has_suffix(path, end));
        let mut logs: Vec<PathBuf> = paths.filter(is_log).collect();
        logs.sort();
        assert!(!logs.is_empty(), "no log in {}", self.0.display());
        logs
    }

    /// Returns one log by its name without `.swf.gz`. If it is missing, reports a skip and returns `None`.
    ///
    /// # Panics
    /// If the log is missing and `MISERLY_REQUIRE_TRACES` is 1.
    #[track_caller]
    pub fn log(&self, name: &str) -> Option<PathBuf> {
        let path = self.0.join(format!("{name}.swf.gz"));
        let met = Requirement::Traces.is_met(path.is_file(), &format!("no {name}.swf.gz in MISERLY_TRACES"));
        met.then_some(path)
    }

    /// Returns the rows with an existing log, each with the path of the log.
    ///
    /// # Panics
    /// If all logs are missing, since a test would check nothing. If one is missing and
    /// `MISERLY_REQUIRE_TRACES` is 1.
    #[track_caller]
    pub fn existing<'a, R>(&self, rows: &'a [R], name: impl Fn(&R) -> &str) -> Vec<(PathBuf, &'a R)> {
        let found: Vec<_> = rows.iter().filter_map(|row| Some((self.log(name(row))?, row))).collect();
        assert!(!found.is_empty(), "none of the checked logs is in MISERLY_TRACES");
        found
    }
}

fn has_suffix(path: &Path, suffix: &str) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(suffix.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::Traces;

    #[test]
    #[should_panic(expected = "in MISERLY_TRACES")]
    fn a_folder_of_other_logs_does_not_pass() {
        let folder = Traces(env!("CARGO_MANIFEST_DIR").into());
        folder.existing(&["KTH-SP2-1996-2"], |name| name);
    }

    #[test]
    #[should_panic(expected = "no log in")]
    fn a_folder_without_logs_does_not_pass() {
        Traces(env!("CARGO_MANIFEST_DIR").into()).all();
    }
}
