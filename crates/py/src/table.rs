//! The jobs of a run as columns.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
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

impl JobTable {
    pub(crate) fn new(jobs: JobColumns) -> PyResult<JobTable> {
        let columns: [(&str, ArrayRef); 9] = [
            ("job", Arc::new(Int64Array::from(jobs.number))),
            ("user", Arc::new(UInt32Array::from(jobs.user))),
            ("procs", Arc::new(UInt64Array::from(jobs.procs))),
            ("submit", Arc::new(Float64Array::from(jobs.submit))),
            ("start", Arc::new(Float64Array::from(jobs.start))),
            ("end", Arc::new(Float64Array::from(jobs.end))),
            ("runtime", Arc::new(Float64Array::from(jobs.runtime))),
            ("killed", Arc::new(BooleanArray::from(jobs.killed))),
            ("reason", Arc::new(StringArray::from(jobs.reason))),
        ];
        let field = |(name, array): &(&str, ArrayRef)| {
            Field::new(*name, array.data_type().clone(), *array.data_type() == DataType::UInt32)
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

    fn __repr__(&self) -> String {
        format!("<JobTable: {} jobs; {}>", self.batch.num_rows(), self.names().join(", "))
    }
}

fn list<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let any = array.as_any();
    if let Some(numbers) = any.downcast_ref::<Int64Array>() {
        PyList::new(py, numbers.values())
    } else if let Some(numbers) = any.downcast_ref::<UInt64Array>() {
        PyList::new(py, numbers.values())
    } else if let Some(numbers) = any.downcast_ref::<Float64Array>() {
        PyList::new(py, numbers.values())
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
