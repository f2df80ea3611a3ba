//! Parsers of values that several commands take.

use std::ffi::OsStr;
use std::path::PathBuf;

pub(super) use miserly_options::values::{job_time, procs, seconds, unsigned_seconds, words};

use crate::picture;

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
