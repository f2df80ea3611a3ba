//! Errors as Python raises them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::PyErr;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

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

/// Does a piece of work. A panic, which is a defect, becomes an error.
pub(crate) fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(defect(&*panic)))
}

/// Returns the error of a panic.
pub(crate) fn defect(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    error(format!("a defect of miserly: {text}; please report it"))
}
