//! Errors as Python raises them.

use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

pyo3::create_exception!(
    miserly,
    MiserlyError,
    PyValueError,
    "What was asked for is not understood or cannot be done; the message says what, where, and what to do."
);

/// Returns the error of a cause.
pub(crate) fn error(cause: impl std::fmt::Display) -> PyErr {
    MiserlyError::new_err(cause.to_string())
}

/// Returns the error of a cause that has causes of its own.
pub(crate) fn chained(cause: &anyhow::Error) -> PyErr {
    MiserlyError::new_err(format!("{cause:#}"))
}
