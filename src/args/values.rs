//! Parsers of values that several commands take.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::value_parser;
use miserly_core::{Procs, Span};
use miserly_policies::shared::Profile;
use miserly_units::{UnitError, parse_seconds};

use crate::picture;

/// Parses a duration in whole seconds.
pub(super) fn seconds(text: &str) -> Result<i64, UnitError> {
    parse_seconds(text, Span::ZERO)
}

/// Parses a duration, as an unsigned number of seconds.
pub(super) fn unsigned_seconds(text: &str) -> Result<u64, UnitError> {
    seconds(text).map(i64::unsigned_abs)
}

/// Returns the parser of a machine size.
pub(super) fn procs() -> impl TypedValueParser<Value = Procs> {
    value_parser!(u32).range(1..=i64::from(Profile::MOST)).map(|procs| Procs::new(procs.into()))
}

/// Returns the parser of a value by its word. Each row has the word, the value and its help.
pub(super) fn words<T: Clone + Send + Sync + 'static>(
    rows: &'static [(&'static str, T, &'static str)],
) -> impl TypedValueParser<Value = T> {
    let possible = rows.iter().map(|(word, _, help)| PossibleValue::new(word).help(*help));
    PossibleValuesParser::new(possible).map(|given| {
        let row = rows.iter().find(|(word, ..)| *word == given);
        row.expect("it is one of the possible values").1.clone()
    })
}

/// Parses the name of a page. Its ending is .html, so it cannot be a log.
pub(super) fn page_name(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    let html = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("html"));
    if html { Ok(path) } else { Err("the file name must end in .html") }
}

/// Parses the name of a picture.
pub(super) fn slide_name(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    match path.extension().and_then(OsStr::to_str).map(str::to_ascii_lowercase).as_deref() {
        Some("svg") => Ok(path),
        Some("png") if picture::has_program() => Ok(path),
        Some("png") => Err(picture::NO_PROGRAM),
        _ => Err("the file name must end in .svg or .png"),
    }
}

/// Parses an instant of the past.
#[cfg(feature = "daemon")]
pub(super) fn past(text: &str) -> Result<jiff::Timestamp, String> {
    miserly_api::submit::past_instant(text, &jiff::Zoned::now())
}
