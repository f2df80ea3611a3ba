//! The values of fields, with their problems.

use std::path::PathBuf;

use miserly_core::Span;
use miserly_machine_file::duration;
use toml::{Spanned, Value};

use super::error::{Problem, of_field};

/// Returns the duration in a field, if it is there.
pub(super) fn time(written: Option<&Spanned<Value>>, field: &str) -> Result<Option<Span>, Problem> {
    let read = |written: &Spanned<Value>| {
        duration(written.get_ref()).map_err(|problem| of_field(written, field, &problem))
    };
    written.map(read).transpose()
}

/// Returns an absolute path. A relative one would depend on the directory in which the daemon was
/// started.
pub(super) fn folder(written: Option<&Spanned<String>>, field: &str) -> Result<Option<PathBuf>, Problem> {
    let Some(written) = written else { return Ok(None) };
    let path = PathBuf::from(written.get_ref());
    if path.is_absolute() {
        Ok(Some(path))
    } else {
        let problem = format!("{field} = {:?}: write the whole path, from / on", written.get_ref());
        Err(Problem::new(written.span(), problem))
    }
}
