//! The native part of the Python package `miserly`.

// PyO3 gives the arguments of a function by value.
#![allow(clippy::needless_pass_by_value)]

mod answers;
mod error;
mod frame;
mod gym;
mod json;
mod log;
mod policies;
mod run;
mod signals;
mod symbols;
mod table;
mod words;

use std::sync::OnceLock;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// The interpreter that imported the package first, by the address of its module `sys`.
static INTERPRETER: OnceLock<usize> = OnceLock::new();

/// Refuses another interpreter of this process: the types of the package belong to the first one.
fn refuse_another_interpreter(py: Python<'_>) -> PyResult<()> {
    let this = py.import("sys")?.as_ptr().addr();
    if *INTERPRETER.get_or_init(|| this) == this {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "miserly: another interpreter of this process has imported the package; a subinterpreter cannot share it; use a process",
    ))
}

/// The native part of the package.
#[pymodule]
mod _miserly {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::refuse_another_interpreter(module.py())
    }

    #[pymodule_export]
    use super::answers::{Answer, experiment, explain, forecast, what_if};
    #[pymodule_export]
    use super::error::MiserlyError;
    #[pymodule_export]
    use super::gym::Envs;
    #[pymodule_export]
    use super::log::Log;
    #[pymodule_export]
    use super::policies::{Job, JobOrder};
    #[pymodule_export]
    use super::run::{Comparison, Run, compare, score, simulate};
    #[pymodule_export]
    use super::symbols::{Symbol, SymbolicJob};
    #[pymodule_export]
    use super::table::JobTable;
}
