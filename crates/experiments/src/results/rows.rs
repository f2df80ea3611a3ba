//! One row per run.

use std::collections::BTreeSet;

use serde_json::Value;

use super::flat::flatten;
use super::{Results, at};
use crate::Table;
use crate::experiment::{AXES, IndexedRun, MAIN, READING};

/// Fields that are no figures of a run.
const NOT_COLUMNS: [&str; 2] = ["policy", "trace.name"];

/// Returns the runs as rows of texts and numbers: the values of their axes, then the figures of their documents.
///
/// The columns are `figures`, by their paths, in this order; all that there are where none is named.
pub(super) fn rows(results: &Results, figures: &[&str]) -> Table {
    let mut seen = BTreeSet::new();
    // A reading that changes nothing of a run has no row of its own.
    let is_new = |run: &&IndexedRun| {
        let is_first = seen.insert(run.key.clone());
        results.documents.contains_key(&run.key) && (is_first || run.axes[READING] == MAIN)
    };
    let runs: Vec<_> = results.index.runs.iter().filter(is_new).collect();
    let document = |key: &str| &results.documents[key]["run"];
    let mut paths: Vec<String> = figures.iter().map(ToString::to_string).collect();
    if figures.is_empty() {
        paths = all_paths(runs.iter().map(|run| document(&run.key)));
    }
    let row = |run: &&IndexedRun| {
        let document = document(&run.key);
        let axes = AXES.iter().map(|axis| run.axes.get(*axis).map(|value| value.clone().into()));
        let names = [Some(run.key.clone().into()), document.get("policy").cloned()];
        let figures = paths.iter().map(|path| at(document, path).cloned());
        axes.chain(names).chain(figures).collect()
    };
    let cells = runs.iter().map(row).collect();
    let names = AXES.into_iter().chain(["key", "written"]).map(str::to_owned);
    Table { columns: names.chain(paths.iter().cloned()).collect(), cells }
}

/// Every figure that some document has.
fn all_paths<'a>(documents: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let paths: BTreeSet<String> = documents.flat_map(flatten).map(|(path, _)| path).collect();
    paths.into_iter().filter(|path| !NOT_COLUMNS.contains(&path.as_str())).collect()
}

/// The results as CSV, one row per run; `figures` as an experiment's `metrics` names them.
///
/// # Errors
/// If the writer fails, which it does not in memory.
pub fn csv(results: &Results, figures: &[&str]) -> Result<Vec<u8>, csv::Error> {
    rows(results, figures).csv()
}

/// The same as Parquet.
///
/// # Errors
/// If the library cannot write them.
#[cfg(feature = "parquet")]
pub fn parquet(results: &Results, figures: &[&str]) -> Result<Vec<u8>, parquet::errors::ParquetError> {
    rows(results, figures).parquet()
}
