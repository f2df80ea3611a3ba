//! Figures of results, for tables, charts and claims.

use crate::results::{Figure, Found, Results, at, figure};
use crate::selector::Selector;
use serde_json::Value;

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
    let (document, inner) = match path.strip_prefix("log.") {
        Some(inner) => (log(results, select)?, inner.to_owned()),
        None => match results.find(select)? {
            Found::NoLog => (None, String::new()),
            Found::Runs(documents) => (documents.first().copied(), in_run(path)),
        },
    };
    let Some(document) = document else { return Ok(None) };
    at(document, &inner).map(Some).ok_or_else(|| format!("the results have no {path:?}"))
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

/// Returns a number with `digits` decimals, its thousands apart.
pub(crate) fn shown(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |text| ("-", text));
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    let point = if decimals.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{decimals}")
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn thousands_apart() {
        for (value, digits, expect) in
            [(0.0, 2, "0.00"), (999.999, 2, "1 000.00"), (-1_234_567.5, 1, "-1 234 567.5"), (12.0, 0, "12")]
        {
            assert_eq!(shown(value, digits), expect);
        }
    }
}
