//! From the text of a file to what it says, and back to the line.

use std::ops::Range;

use serde::de::DeserializeOwned;

use crate::Problem;

/// What a text says, as it is written.
///
/// # Errors
/// What the parser says, in one line.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    toml::from_str(text).map_err(|error| {
        let told = error.message().lines().collect::<Vec<_>>().join("; ");
        Problem::new(error.span().unwrap_or(0..0), told)
    })
}

/// The line of the text in which that begins; the first is 1.
pub fn line_of(text: &str, at: &Range<usize>) -> usize {
    let before = text.get(..at.start).unwrap_or(text);
    1 + before.matches('\n').count()
}
