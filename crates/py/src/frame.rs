//! Data frames as tables of jobs.

use std::fmt;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::{
    Date32Type, Date64Type, Decimal128Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, SchemaRef, TimeUnit};
use miserly_import::{Cell, ColumnMap, Frame, ImportError, TableField};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyDict, PyList, PyTuple};

use crate::error::error;
use crate::signals::Stop;

/// The name of an Arrow stream in a capsule.
const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// The microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// A data frame, as a stream of batches of its columns.
pub(crate) struct StreamFrame<'a> {
    schema: SchemaRef,
    batches: &'a mut (dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send),
    stop: &'a Stop,
}

/// Returns the stream of an object with `__arrow_c_stream__`.
pub(crate) fn stream(frame: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let given = frame.call_method0("__arrow_c_stream__")?;
    let capsule = given.cast::<PyCapsule>().map_err(|_| {
        PyTypeError::new_err(
            "__arrow_c_stream__ gives no capsule; it must give one of the Arrow PyCapsule interface",
        )
    })?;
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the interface promises that a capsule of this name has a valid stream. It is moved out of it.
    #[allow(unsafe_code, reason = "the C interface of Arrow has no safe form")]
    let stream = unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr()) };
    stream.map_err(error)
}

impl<'a> StreamFrame<'a> {
    /// Returns the frame of a stream.
    pub(crate) fn new(stream: &'a mut RecordBatchStreamReader, stop: &'a Stop) -> StreamFrame<'a> {
        StreamFrame { schema: stream.schema(), batches: stream, stop }
    }

    /// Returns the error of a stream that breaks off. Some libraries give columns without a type in a form of their own.
    fn unreadable(&self, cause: &ArrowError) -> ImportError {
        let untyped = self.schema.fields().iter().find(|field| *field.data_type() == DataType::Null);
        ImportError::Frame(match untyped {
            Some(field) => {
                format!("frame: column {:?} has no type; drop it, or cast it to one", field.name())
            }
            None => format!("frame: {cause}"),
        })
    }

    fn column_type(&self, column: usize) -> (&str, &DataType) {
        let field = self.schema.field(column);
        (field.name(), field.data_type())
    }
}

impl Frame for StreamFrame<'_> {
    fn names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn each(
        &mut self,
        columns: &[usize],
        work: &mut dyn FnMut(&[Cell<'_>]) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        for &column in columns {
            let (name, kind) = self.column_type(column);
            if !is_readable(kind) {
                return Err(ImportError::Frame(format!(
                    "frame: column {name:?} has the type {kind}; cast it to numbers, texts or timestamps"
                )));
            }
        }
        while let Some(batch) = self.batches.next() {
            let batch = batch.map_err(|cause| self.unreadable(&cause))?;
            let columns: Vec<Column<'_>> =
                columns.iter().map(|&column| Column::new(batch.column(column))).collect();
            let mut cells = vec![Cell::Null; columns.len()];
            for row in 0..batch.num_rows() {
                if row % (1 << 16) == 0 {
                    self.stop.check();
                }
                for (cell, column) in cells.iter_mut().zip(&columns) {
                    *cell = column.cell(row);
                }
                work(&cells)?;
            }
        }
        Ok(())
    }
}

/// Returns whether the values of a type are cells.
fn is_readable(kind: &DataType) -> bool {
    use DataType as D;
    match kind {
        D::Dictionary(keys, values) => {
            keys.is_integer() && !matches!(**values, D::Dictionary(..)) && is_readable(values)
        }
        D::Null
        | D::Boolean
        | D::Float32
        | D::Float64
        | D::Utf8
        | D::LargeUtf8
        | D::Utf8View
        | D::Date32
        | D::Date64
        | D::Timestamp(..)
        | D::Duration(_)
        | D::Decimal128(..) => true,
        kind => kind.is_integer(),
    }
}

/// A column of a batch, with its type.
enum Column<'a> {
    Null,
    Bool(&'a arrow_array::BooleanArray),
    I8(&'a PrimitiveArray<Int8Type>),
    I16(&'a PrimitiveArray<Int16Type>),
    I32(&'a PrimitiveArray<Int32Type>),
    I64(&'a PrimitiveArray<Int64Type>),
    U8(&'a PrimitiveArray<UInt8Type>),
    U16(&'a PrimitiveArray<UInt16Type>),
    U32(&'a PrimitiveArray<UInt32Type>),
    U64(&'a PrimitiveArray<UInt64Type>),
    F32(&'a PrimitiveArray<Float32Type>),
    F64(&'a PrimitiveArray<Float64Type>),
    Text(&'a arrow_array::StringArray),
    LargeText(&'a arrow_array::LargeStringArray),
    TextView(&'a arrow_array::StringViewArray),
    Date32(&'a PrimitiveArray<Date32Type>),
    Date64(&'a PrimitiveArray<Date64Type>),
    /// An instant, or a local time: the microseconds of each value.
    Time {
        values: Ticks<'a>,
        is_utc: bool,
    },
    /// In seconds.
    Duration(Ticks<'a>),
    Decimal(&'a PrimitiveArray<Decimal128Type>, f64),
    Dictionary {
        keys: &'a dyn arrow_array::AnyDictionaryArray,
        places: Vec<usize>,
        values: Box<Column<'a>>,
    },
}

/// Whole numbers of a unit of time.
struct Ticks<'a> {
    array: &'a ArrayRef,
    values: &'a [i64],
    unit: TimeUnit,
}

impl Ticks<'_> {
    fn new<T: ArrowPrimitiveType<Native = i64>>(array: &ArrayRef, unit: TimeUnit) -> Ticks<'_> {
        Ticks { array, values: array.as_primitive::<T>().values(), unit }
    }

    fn micros(&self, row: usize) -> Option<i64> {
        let value = self.array.is_valid(row).then(|| self.values[row])?;
        Some(match self.unit {
            TimeUnit::Second => value.saturating_mul(1_000_000),
            TimeUnit::Millisecond => value.saturating_mul(1000),
            TimeUnit::Microsecond => value,
            TimeUnit::Nanosecond => value.div_euclid(1000),
        })
    }
}

impl<'a> Column<'a> {
    fn new(array: &'a ArrayRef) -> Column<'a> {
        use DataType as D;
        use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
        match array.data_type() {
            D::Boolean => Column::Bool(array.as_boolean()),
            D::Int8 => Column::I8(array.as_primitive()),
            D::Int16 => Column::I16(array.as_primitive()),
            D::Int32 => Column::I32(array.as_primitive()),
            D::Int64 => Column::I64(array.as_primitive()),
            D::UInt8 => Column::U8(array.as_primitive()),
            D::UInt16 => Column::U16(array.as_primitive()),
            D::UInt32 => Column::U32(array.as_primitive()),
            D::UInt64 => Column::U64(array.as_primitive()),
            D::Float32 => Column::F32(array.as_primitive()),
            D::Float64 => Column::F64(array.as_primitive()),
            D::Utf8 => Column::Text(array.as_string()),
            D::LargeUtf8 => Column::LargeText(array.as_string()),
            D::Utf8View => Column::TextView(array.as_string_view()),
            D::Date32 => Column::Date32(array.as_primitive()),
            D::Date64 => Column::Date64(array.as_primitive()),
            D::Timestamp(unit, zone) => Column::Time {
                values: match unit {
                    Second => Ticks::new::<TimestampSecondType>(array, *unit),
                    Millisecond => Ticks::new::<TimestampMillisecondType>(array, *unit),
                    Microsecond => Ticks::new::<TimestampMicrosecondType>(array, *unit),
                    Nanosecond => Ticks::new::<TimestampNanosecondType>(array, *unit),
                },
                is_utc: zone.is_some(),
            },
            D::Duration(unit) => Column::Duration(match unit {
                Second => Ticks::new::<DurationSecondType>(array, *unit),
                Millisecond => Ticks::new::<DurationMillisecondType>(array, *unit),
                Microsecond => Ticks::new::<DurationMicrosecondType>(array, *unit),
                Nanosecond => Ticks::new::<DurationNanosecondType>(array, *unit),
            }),
            D::Decimal128(_, scale) => Column::Decimal(array.as_primitive(), 10_f64.powi((*scale).into())),
            D::Dictionary(..) => {
                let keys = array.as_any_dictionary();
                if keys.values().is_empty() {
                    return Column::Null;
                }
                let values = Box::new(Column::new(keys.values()));
                Column::Dictionary { keys, places: keys.normalized_keys(), values }
            }
            _ => Column::Null,
        }
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        fn value<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
            array.is_valid(row).then(|| array.value(row))
        }
        let found = match self {
            Column::Null => None,
            Column::Bool(array) => array.is_valid(row).then(|| Cell::Int(array.value(row).into())),
            Column::I8(array) => value(array, row).map(|number| Cell::Int(number.into())),
            Column::I16(array) => value(array, row).map(|number| Cell::Int(number.into())),
            Column::I32(array) => value(array, row).map(|number| Cell::Int(number.into())),
            Column::I64(array) => value(array, row).map(Cell::Int),
            Column::U8(array) => value(array, row).map(|number| Cell::Int(number.into())),
            Column::U16(array) => value(array, row).map(|number| Cell::Int(number.into())),
            Column::U32(array) => value(array, row).map(|number| Cell::Int(number.into())),
            Column::U64(array) => value(array, row)
                .map(|number| i64::try_from(number).map_or(Cell::Float(number as f64), Cell::Int)),
            Column::F32(array) => value(array, row).map(|number| Cell::Float(number.into())),
            Column::F64(array) => value(array, row).map(Cell::Float),
            Column::Text(array) => array.is_valid(row).then(|| Cell::Text(array.value(row).as_bytes())),
            Column::LargeText(array) => array.is_valid(row).then(|| Cell::Text(array.value(row).as_bytes())),
            Column::TextView(array) => array.is_valid(row).then(|| Cell::Text(array.value(row).as_bytes())),
            Column::Date32(array) => {
                value(array, row).map(|days| Cell::Local(i64::from(days).saturating_mul(DAY)))
            }
            Column::Date64(array) => value(array, row).map(|millis| Cell::Local(millis.saturating_mul(1000))),
            Column::Time { values, is_utc } => {
                values.micros(row).map(if *is_utc { Cell::Instant } else { Cell::Local })
            }
            Column::Duration(values) => values.micros(row).map(|micros| Cell::Float(micros as f64 / 1e6)),
            Column::Decimal(array, scale) => {
                value(array, row).map(|number| Cell::Float(number as f64 / scale))
            }
            Column::Dictionary { keys, places, values } => {
                return if keys.is_valid(row) { values.cell(places[row]) } else { Cell::Null };
            }
        };
        found.unwrap_or(Cell::Null)
    }
}

/// Returns the column map of a dict: fields with their columns or rules, as in a file.
pub(crate) fn column_map(columns: &Bound<'_, PyDict>) -> PyResult<ColumnMap> {
    let (mut of_table, mut fields, mut rules) = (String::new(), String::new(), String::new());
    for (name, value) in columns.iter() {
        let name: String = name.extract()?;
        let part = match &*name {
            "zone" | "relative" | "notes" => &mut of_table,
            "drop" => &mut rules,
            _ => &mut fields,
        };
        part.push_str(&format!("{} = {}\n", toml_text(&name), toml(&name, &value)?));
    }
    map_of([of_table, fields, rules])
}

fn map_of([of_table, fields, rules]: [String; 3]) -> PyResult<ColumnMap> {
    let rules = if rules.is_empty() { String::new() } else { format!("[rules]\n{rules}") };
    ColumnMap::parse("columns", &format!("[table]\n{of_table}[columns]\n{fields}{rules}")).map_err(error)
}

/// Returns the map of a frame whose columns have the names of fields.
pub(crate) fn own_names(schema: &SchemaRef) -> PyResult<ColumnMap> {
    let mut fields = String::new();
    let mut is_dated = false;
    for field in schema.fields() {
        if TableField::ALL.iter().any(|known| known.name() == field.name()) {
            fields.push_str(&format!("{0} = {0:?}\n", field.name()));
            is_dated |= field.name() == "submit" && !is_number(field.data_type());
        }
    }
    let has_submit = schema.fields().iter().any(|field| field.name() == "submit");
    if !has_submit {
        let names: Vec<String> = schema.fields().iter().map(|field| format!("{:?}", field.name())).collect();
        return Err(error(format!(
            "frame: no column submit; say what the columns mean with columns={{\"submit\": NAME, ...}} or preset=NAME; they are {}",
            Shortened(&names)
        )));
    }
    let of_table = if is_dated { String::new() } else { "relative = true\n".to_owned() };
    map_of([of_table, fields, String::new()])
}

fn is_number(kind: &DataType) -> bool {
    kind.is_numeric() || matches!(kind, DataType::Duration(_))
}

/// The first of some names.
struct Shortened<'a>(&'a [String]);

impl fmt::Display for Shortened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 12;
        let shown = &self.0[..self.0.len().min(MOST)];
        write!(f, "{}{}", shown.join(", "), if self.0.len() > MOST { ", ..." } else { "" })
    }
}

/// Returns a value in TOML.
fn toml(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(truth.is_true().to_string());
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(toml_text(&text));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let values: Vec<String> =
            value.try_iter()?.map(|value| toml(name, &value?)).collect::<PyResult<_>>()?;
        return Ok(format!("[{}]", values.join(", ")));
    }
    if let Ok(table) = value.cast::<PyDict>() {
        let entry = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok(format!("{} = {}", toml_text(&key.extract::<String>()?), toml(name, &value)?))
        };
        let entries: Vec<String> = table.iter().map(entry).collect::<PyResult<_>>()?;
        return Ok(format!("{{ {} }}", entries.join(", ")));
    }
    Err(PyTypeError::new_err(format!(
        "columns: {name}: give the name of a column, or a dict such as {{\"column\": \"limit\", \"unit\": \"min\"}}"
    )))
}

/// Returns a text in TOML, whose escapes are those of JSON.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
