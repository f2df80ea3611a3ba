//! The words of the settings of a machine.

use miserly_core::{Sharing, Spread};
use toml::Spanned;

use crate::problem::Problem;

/// The words for the number of hosts over which a job may lie.
pub const SPANS: [(&str, Spread); 2] = [("one", Spread::One), ("any", Spread::Any)];

/// The words for the sharing of hosts among jobs.
pub const SHARINGS: [(&str, Sharing); 2] = [("shared", Sharing::Shared), ("whole", Sharing::Whole)];

/// Returns the word for a value of a list that has all values.
pub fn word_of<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, of)| *of == value).map_or("", |(word, _)| word)
}

/// Returns the value of a word.
///
/// # Errors
/// The words that the field admits.
pub fn value_of<T: Copy>(words: &[(&str, T)], field: &str, written: &str) -> Result<T, String> {
    words.iter().find(|(word, _)| *word == written).map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        format!("{field} = {written:?}: must be one of {}", known.join(", "))
    })
}

/// Returns the value of a word in a file, or the default if the field is missing.
///
/// # Errors
/// The words that the field admits.
pub fn value_or_default<T: Copy + Default>(
    written: Option<&Spanned<String>>,
    field: &str,
    words: &[(&str, T)],
) -> Result<T, Problem> {
    let Some(written) = written else { return Ok(T::default()) };
    value_of(words, field, written.get_ref()).map_err(|problem| Problem::new(written.span(), problem))
}
