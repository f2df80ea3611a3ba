//! The words of the settings of a machine.

use std::fmt::Display;

use toml::Spanned;

use crate::problem::Problem;

/// Returns the value of a word, of a list that has all values.
///
/// # Errors
/// The words that the field admits.
pub fn value_of<T: Copy + Display>(all: &[T], field: &str, written: &str) -> Result<T, String> {
    all.iter().copied().find(|value| value.to_string() == written).ok_or_else(|| {
        let known: Vec<_> = all.iter().map(T::to_string).collect();
        format!("{field} = {written:?}: must be one of {}", known.join(", "))
    })
}

/// Returns the value of a word in a file, or the default if the field is missing.
///
/// # Errors
/// The words that the field admits.
pub fn value_or_default<T: Copy + Default + Display>(
    written: Option<&Spanned<String>>,
    field: &str,
    all: &[T],
) -> Result<T, Problem> {
    let Some(written) = written else { return Ok(T::default()) };
    value_of(all, field, written.get_ref()).map_err(|problem| Problem::new(written.span(), problem))
}
