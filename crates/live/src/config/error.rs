//! Problems of a configuration, with their locations.

use std::fmt::Display;

pub(super) use miserly_machine_file::Problem;
use toml::Spanned;

/// The reason why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Unread {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// Something in the file is wrong.
    #[error("{path}:{line}: {problem}")]
    File {
        /// The file.
        path: String,
        /// The line; the first is 1.
        line: usize,
        /// The field, the problem, and the remedy.
        problem: String,
    },
    /// There is no file. The problem lies in the machine or the user.
    #[error("{0}")]
    Here(String),
}

/// Returns a problem with a field at its location in the file.
pub(super) fn of_field<T>(written: &Spanned<T>, field: &str, problem: &dyn Display) -> Problem {
    Problem::new(written.span(), format!("{field}: {problem}"))
}

impl ConfigError {
    /// Returns the problem with its line. Without a file there are no lines.
    pub(super) fn at(path: &str, text: &str, problem: Problem) -> ConfigError {
        if path.is_empty() {
            return ConfigError::Here(problem.text);
        }
        ConfigError::File { path: path.to_owned(), line: problem.line(text), problem: problem.text }
    }
}
