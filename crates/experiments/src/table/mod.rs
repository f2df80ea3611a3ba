//! Tables for other programs.

#[cfg(feature = "parquet")]
mod parquet;

use serde_json::Value;

/// Rows of texts and numbers, as they are written for other programs.
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// By row and column; nothing where it is not known.
    pub cells: Vec<Vec<Option<Value>>>,
}

impl Table {
    /// The table as CSV, with the names in the first line.
    ///
    /// # Errors
    /// If the writer fails, which it does not in memory.
    pub fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.columns)?;
        for row in &self.cells {
            writer.write_record(row.iter().map(|cell| cell.as_ref().map_or_else(String::new, text)))?;
        }
        writer.into_inner().map_err(|error| error.into_error().into())
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
