//! A table as Parquet.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use serde_json::Value;

use super::Table;

impl Table {
    /// The table as Parquet, with the columns of the CSV. A column is of whole numbers, of numbers, of truth values,
    /// or else of texts, by what stands in it; what is not known is null.
    ///
    /// # Errors
    /// If the library cannot write it.
    pub fn parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let columns = self.columns.iter().enumerate().map(|(at, name)| (name, column(&self.cells, at)));
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))?;
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None)?;
        writer.write(&batch)?;
        writer.into_inner()
    }
}

fn column(rows: &[Vec<Option<Value>>], at: usize) -> ArrayRef {
    let cells: Vec<Option<&Value>> = rows
        .iter()
        .map(|row| row.get(at).and_then(Option::as_ref).filter(|value| !value.is_null()))
        .collect();
    let all = |kind: fn(&Value) -> bool| cells.iter().flatten().all(|value| kind(value));
    if all(Value::is_i64) {
        Arc::new(cells.iter().map(|cell| cell.and_then(Value::as_i64)).collect::<Int64Array>())
    } else if all(Value::is_number) {
        Arc::new(cells.iter().map(|cell| cell.and_then(Value::as_f64)).collect::<Float64Array>())
    } else if all(Value::is_boolean) {
        Arc::new(cells.iter().map(|cell| cell.and_then(Value::as_bool)).collect::<BooleanArray>())
    } else {
        Arc::new(cells.iter().map(|cell| cell.map(super::text)).collect::<StringArray>())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_by_what_stands_in_them() {
        let rows = [
            vec![Some(json!(1)), Some(json!(1)), Some(json!("a")), Some(json!(true)), None],
            vec![Some(json!(2)), Some(json!(0.5)), Some(json!(7)), Some(Value::Null), Some(json!(3))],
        ];
        let columns: Vec<ArrayRef> = (0..5).map(|at| column(&rows, at)).collect();
        assert_eq!(columns[0].as_primitive::<Int64Type>().values(), &[1, 2]);
        assert_eq!(columns[1].as_primitive::<Float64Type>().values(), &[1.0, 0.5]);
        assert_eq!(
            (columns[2].as_string::<i32>().value(0), columns[2].as_string::<i32>().value(1)),
            ("a", "7")
        );
        assert!(columns[3].as_boolean().value(0) && columns[3].is_null(1));
        assert!(columns[4].is_null(0) && columns[4].as_primitive::<Int64Type>().value(1) == 3);
    }
}
