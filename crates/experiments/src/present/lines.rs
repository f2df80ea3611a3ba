//! Figures of results, for tables, charts and claims.

use crate::results::{Figure, Found, Results, at, figure};
use crate::selector::Selector;
use serde_json::Value;

/// The start of a path into the description of a log.
pub(super) const OF_LOG: &str = "log.";

/// A figure, or the reason for which there is none.
#[derive(Clone, Copy)]
pub(super) enum Lookup {
    Figure(Figure),
    /// The log is missing.
    NoLog,
    /// There was nothing to measure.
    Nothing,
}

impl Lookup {
    /// Returns the figure at a path of the runs.
    pub(super) fn new(found: &Found<'_>, path: &str) -> Result<Lookup, String> {
        match found {
            Found::NoLog => Ok(Lookup::NoLog),
            Found::Runs(documents) => {
                Ok(figure(documents, &in_run(path))?.map_or(Lookup::Nothing, Lookup::Figure))
            }
        }
    }

    pub(super) fn figure(self) -> Option<Figure> {
        if let Lookup::Figure(figure) = self { Some(figure) } else { None }
    }
}

/// Returns the value at `path` of the document that `select` finds; `None` if the log is missing.
///
/// The document is that of the log if the path starts with `log.`, else that of the run with its first seed.
pub(super) fn part<'a>(
    results: &'a Results,
    select: &Selector,
    path: &str,
) -> Result<Option<&'a Value>, String> {
    let (document, inner) = match path.strip_prefix(OF_LOG) {
        Some(inner) => (log(results, select)?, inner.to_owned()),
        None => (first(results, select)?, in_run(path)),
    };
    let Some(document) = document else { return Ok(None) };
    at(document, &inner).map(Some).ok_or_else(|| format!("the results have no {path:?}"))
}

/// Returns the stored result of the first seed that `select` finds; `None` if the log is missing.
pub(super) fn first<'a>(results: &'a Results, select: &Selector) -> Result<Option<&'a Value>, String> {
    Ok(match results.find(select)? {
        Found::NoLog => None,
        Found::Runs(documents) => documents.first().copied(),
    })
}

fn log<'a>(results: &'a Results, select: &Selector) -> Result<Option<&'a Value>, String> {
    let name = select.get("trace").ok_or("a value of a log needs trace = ...")?;
    if !results.index.traces.iter().any(|trace| trace.name == name) {
        return Err(format!("trace {name:?} is not defined"));
    }
    Ok(results.trace(name))
}

/// Returns the path into the stored result of a run.
fn in_run(path: &str) -> String {
    // Stored beside the document of the run.
    let beside = path.starts_with("gantt") || path == "matrix" || path == "longest_waits";
    if beside { path.to_owned() } else { format!("run.{path}") }
}
