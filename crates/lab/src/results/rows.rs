//! One row per run.

use serde_json::Value;

use super::Results;
use super::flat::flatten;

/// The runs as rows, of texts and numbers: what tells them apart, then every figure of their documents.
pub(super) struct Rows {
    pub(super) columns: Vec<String>,
    /// By row and column.
    pub(super) cells: Vec<Vec<Option<Value>>>,
}

/// Fields that say nothing of one run.
const NOT_COLUMNS: [&str; 2] = ["policy", "trace.name"];

impl Rows {
    pub(super) fn of(results: &Results) -> Rows {
        let axes: Vec<String> = crate::experiment::AXES.iter().map(ToString::to_string).collect();
        let mut columns = [axes.clone(), vec!["key".into(), "written".into()]].concat();
        let runs: Vec<_> =
            results.runs.iter().filter(|run| results.documents.contains_key(&run.key)).collect();
        let mut rows = Vec::new();
        for run in runs {
            let document = &results.documents[&run.key]["run"];
            let mut row: Vec<Option<Value>> =
                axes.iter().map(|axis| run.axes.get(axis).map(|v| v.clone().into())).collect();
            row.extend([Some(run.key.clone().into()), document.get("policy").cloned()]);
            for (path, value) in
                flatten(document).into_iter().filter(|(path, _)| !NOT_COLUMNS.contains(&path.as_str()))
            {
                let at = columns.iter().position(|column| *column == path).unwrap_or_else(|| {
                    columns.push(path);
                    columns.len() - 1
                });
                row.resize(row.len().max(at + 1), None);
                row[at] = Some(value);
            }
            rows.push(row);
        }
        for row in &mut rows {
            row.resize(columns.len(), None);
        }
        Rows { columns, cells: rows }
    }
}

/// The results as CSV, one row per run.
///
/// # Errors
/// If the writer fails, which it does not in memory.
pub fn csv(results: &Results) -> Result<Vec<u8>, csv::Error> {
    let rows = Rows::of(results);
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&rows.columns)?;
    for row in &rows.cells {
        writer.write_record(row.iter().map(|cell| cell.as_ref().map_or_else(String::new, text)))?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
