//! A table as Parquet.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use serde_json::Value;

use super::Table;

impl Table {
    /// The table as Parquet, with the columns of the CSV. A column is of whole numbers, of numbers, of truth values,
    /// or else of texts, by what stands in it; what is not known is null.
    ///
    /// # Errors
    /// If the library cannot write it.
    pub fn parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let columns: Vec<Column<'_>> =
            (0..self.columns.len()).map(|at| Column::new(&self.cells, at)).collect();
        let fields = self.columns.iter().zip(&columns).map(|(name, column)| column.field(name));
        let schema =
            Type::group_type_builder("table").with_fields(fields.collect::<Result<_, _>>()?).build()?;
        let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::default())?;
        let mut rows = file.next_row_group()?;
        for column in &columns {
            if let Some(writer) = rows.next_column()? {
                column.write(writer)?;
            }
        }
        rows.close()?;
        file.into_inner()
    }
}

/// The cells of a column, and what all of them are.
struct Column<'a> {
    cells: Vec<Option<&'a Value>>,
    kind: PhysicalType,
}

impl Column<'_> {
    fn new(rows: &[Vec<Option<Value>>], at: usize) -> Column<'_> {
        let cells: Vec<Option<&Value>> = rows
            .iter()
            .map(|row| row.get(at).and_then(Option::as_ref).filter(|value| !value.is_null()))
            .collect();
        let all = |is: fn(&Value) -> bool| cells.iter().flatten().all(|value| is(value));
        let kind = if all(Value::is_i64) {
            PhysicalType::INT64
        } else if all(Value::is_number) {
            PhysicalType::DOUBLE
        } else if all(Value::is_boolean) {
            PhysicalType::BOOLEAN
        } else {
            PhysicalType::BYTE_ARRAY
        };
        Column { cells, kind }
    }

    fn field(&self, name: &str) -> Result<Arc<Type>, ParquetError> {
        let is_text = self.kind == PhysicalType::BYTE_ARRAY;
        let field = Type::primitive_type_builder(name, self.kind)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(is_text.then_some(LogicalType::String));
        field.build().map(Arc::new)
    }

    fn write(&self, writer: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self.kind {
            PhysicalType::INT64 => self.write_as::<Int64Type>(writer, Value::as_i64),
            PhysicalType::DOUBLE => self.write_as::<DoubleType>(writer, Value::as_f64),
            PhysicalType::BOOLEAN => self.write_as::<BoolType>(writer, Value::as_bool),
            _ => self.write_as::<ByteArrayType>(writer, |cell| {
                Some(ByteArray::from(super::text(cell).into_bytes()))
            }),
        }
    }

    fn write_as<T: DataType>(
        &self,
        mut writer: SerializedColumnWriter<'_>,
        value: impl Fn(&Value) -> Option<T::T>,
    ) -> Result<(), ParquetError> {
        let values: Vec<T::T> = self.cells.iter().filter_map(|cell| value((*cell)?)).collect();
        let defined: Vec<i16> = self.cells.iter().map(|cell| i16::from(cell.is_some())).collect();
        writer.typed::<T>().write_batch(&values, Some(&defined), None)?;
        writer.close()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_by_what_stands_in_them() {
        let cells = vec![
            vec![Some(json!(1)), Some(json!(1)), Some(json!("a")), Some(json!(true)), None],
            vec![Some(json!(2)), Some(json!(0.5)), Some(json!(7)), Some(Value::Null), Some(json!(3))],
        ];
        let columns = ["whole", "number", "text", "truth", "missing"].map(str::to_owned).to_vec();
        let bytes = Table { columns, cells }.parquet().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows: Vec<String> =
            reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        let expect = [
            r#"{whole: 1, number: 1.0, text: "a", truth: true, missing: null}"#,
            r#"{whole: 2, number: 0.5, text: "7", truth: null, missing: 3}"#,
        ];
        assert_eq!(rows, expect);
    }
}
