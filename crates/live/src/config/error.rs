//! What is wrong with a configuration, and where.

use std::ops::Range;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Unread {
        /// The file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// Something in the file is wrong.
    #[error("{path}:{line}: {problem}")]
    File {
        /// The file.
        path: String,
        /// The line; the first is 1.
        line: usize,
        /// The field, what is wrong with it, and what to do.
        problem: String,
    },
    /// Without a file: something of the machine or of the user.
    #[error("{0}")]
    Here(String),
}

/// What is wrong, and where in the text.
pub(super) type Problem = (Range<usize>, String);

impl ConfigError {
    /// The problem at its line; without a file there are no lines.
    pub(super) fn at(path: &str, text: &str, (at, problem): Problem) -> ConfigError {
        if path.is_empty() {
            return ConfigError::Here(problem);
        }
        let before = text.get(..at.start).unwrap_or(text);
        ConfigError::File { path: path.to_owned(), line: 1 + before.matches('\n').count(), problem }
    }
}
