//! JSON documents as objects of Python.

use pyo3::prelude::*;

/// Returns the objects of a JSON text.
pub(crate) fn to_python<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (text,))
}
