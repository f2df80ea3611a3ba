//! The jobs of a run as columns.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema};
use miserly_sim::JobColumns;
use pyo3::exceptions::{PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::error::error;

/// The finished jobs of a run, in the order of their submissions. Times are in seconds of the log.
///
/// It is an Arrow stream, so that `polars.DataFrame(jobs)`, `pyarrow.table(jobs)` and `pandas.DataFrame.from_arrow(jobs)`
/// read it without a copy.
#[pyclass(frozen, module = "miserly")]
pub(crate) struct JobTable {
    batch: RecordBatch,
}

/// A column with its name. A column of `Option`s may have nulls.
pub(crate) type NamedColumn = (String, ArrayRef);

impl JobTable {
    /// Returns the table of the jobs of a run.
    pub(crate) fn new(jobs: JobColumns) -> PyResult<JobTable> {
        JobTable::from_columns(vec![
            ("job".into(), Arc::new(Int64Array::from(jobs.number))),
            ("user".into(), Arc::new(UInt32Array::from(jobs.user))),
            ("procs".into(), Arc::new(UInt64Array::from(jobs.procs))),
            ("submit".into(), Arc::new(Float64Array::from(jobs.submit))),
            ("start".into(), Arc::new(Float64Array::from(jobs.start))),
            ("end".into(), Arc::new(Float64Array::from(jobs.end))),
            ("runtime".into(), Arc::new(Float64Array::from(jobs.runtime))),
            ("killed".into(), Arc::new(BooleanArray::from(jobs.killed))),
            ("reason".into(), Arc::new(StringArray::from(jobs.reason))),
        ])
    }

    /// Returns the table of these columns.
    pub(crate) fn from_columns(columns: Vec<NamedColumn>) -> PyResult<JobTable> {
        let field = |(name, array): &NamedColumn| {
            Field::new(name, array.data_type().clone(), array.null_count() > 0 || name == "user")
        };
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        Ok(JobTable { batch: RecordBatch::try_new(schema, arrays).map_err(error)? })
    }

    fn position(&self, name: &str) -> PyResult<usize> {
        let names = || self.names().join(", ");
        let position = self.names().iter().position(|column| *column == name);
        position
            .ok_or_else(|| PyKeyError::new_err(format!("no column {name:?}; the columns are {}", names())))
    }

    fn names(&self) -> Vec<String> {
        self.batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }
}

#[pymethods]
impl JobTable {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.names()
    }

    /// Returns a column as a list.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        list(py, self.batch.column(self.position(name)?))
    }

    /// Returns the columns as lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (name, array) in self.names().iter().zip(self.batch.columns()) {
            columns.set_item(name, list(py, array)?)?;
        }
        Ok(columns)
    }

    /// Returns the columns as an Arrow stream (the `PyCapsule` interface).
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // The interface allows a stream to keep its own types.
        let batches = [Ok::<_, ArrowError>(self.batch.clone())];
        let reader = RecordBatchIterator::new(batches, self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Returns the function that makes the table again, and its arguments, for pickle.
    fn __reduce__<'py>(slf: &Bound<'py, JobTable>) -> PyResult<(Bound<'py, PyAny>, Parts<'py>)> {
        let table = slf.get();
        let columns = table.batch.columns().iter();
        let lists = columns.map(|array| list(slf.py(), array)).collect::<PyResult<_>>()?;
        let kinds = table.batch.schema_ref().fields().iter().map(|field| field.data_type().to_string());
        Ok((slf.get_type().getattr("_restored")?, (table.names(), kinds.collect(), lists)))
    }

    /// Makes a table from its pickled parts.
    #[staticmethod]
    fn _restored(names: Vec<String>, kinds: Vec<String>, lists: Vec<Bound<'_, PyAny>>) -> PyResult<JobTable> {
        let arrays = kinds.iter().zip(lists).map(|(kind, list)| array(kind, &list));
        let columns = names.into_iter().zip(arrays).map(|(name, array)| Ok((name, array?)));
        JobTable::from_columns(columns.collect::<PyResult<_>>()?)
    }

    fn __repr__(&self) -> String {
        format!("<JobTable: {} jobs; {}>", self.batch.num_rows(), self.names().join(", "))
    }
}

/// The names of the columns, the types and the values.
type Parts<'py> = (Vec<String>, Vec<String>, Vec<Bound<'py, PyList>>);

/// Returns the column of a list.
fn array(kind: &str, list: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    Ok(match kind {
        "Int64" => Arc::new(Int64Array::from(list.extract::<Vec<Option<i64>>>()?)),
        "UInt64" => Arc::new(UInt64Array::from(list.extract::<Vec<Option<u64>>>()?)),
        "UInt32" => Arc::new(UInt32Array::from(list.extract::<Vec<Option<u32>>>()?)),
        "Float64" => Arc::new(Float64Array::from(list.extract::<Vec<Option<f64>>>()?)),
        "Boolean" => Arc::new(BooleanArray::from(list.extract::<Vec<Option<bool>>>()?)),
        _ => Arc::new(StringArray::from(list.extract::<Vec<Option<String>>>()?)),
    })
}

fn list<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let any = array.as_any();
    if let Some(numbers) = any.downcast_ref::<Int64Array>() {
        PyList::new(py, numbers.iter().collect::<Vec<_>>())
    } else if let Some(numbers) = any.downcast_ref::<UInt64Array>() {
        PyList::new(py, numbers.iter().collect::<Vec<_>>())
    } else if let Some(numbers) = any.downcast_ref::<Float64Array>() {
        PyList::new(py, numbers.iter().collect::<Vec<_>>())
    } else if let Some(numbers) = any.downcast_ref::<UInt32Array>() {
        PyList::new(py, numbers.iter().collect::<Vec<_>>())
    } else if let Some(flags) = any.downcast_ref::<BooleanArray>() {
        PyList::new(py, flags.iter().collect::<Vec<_>>())
    } else if let Some(texts) = any.downcast_ref::<StringArray>() {
        PyList::new(py, texts.iter().collect::<Vec<_>>())
    } else {
        Err(PyIndexError::new_err("a column of an unknown type"))
    }
}
