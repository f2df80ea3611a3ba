//! A mistake in a file, and the line at which it stands.

use std::ops::Range;

use serde::de::DeserializeOwned;

/// A mistake in a file, and its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The bytes of the text that are wrong.
    pub at: Range<usize>,
    /// The mistake, and its remedy.
    pub text: String,
}

impl Problem {
    /// Returns the problem of that part of the text.
    pub fn new(at: Range<usize>, text: impl Into<String>) -> Problem {
        Problem { at, text: text.into() }
    }

    /// Returns the line of the text at which the problem begins. The first line is 1.
    pub fn line(&self, text: &str) -> usize {
        let before = text.get(..self.at.start).unwrap_or(text);
        1 + before.matches('\n').count()
    }
}

/// Returns the content of a text, unchecked.
///
/// # Errors
/// The message of the parser, in one line.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    toml::from_str(text).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        Problem::new(error.span().unwrap_or(0..0), message)
    })
}
