//! The native part of the Python package `miserly`.

mod error;
mod gym;
mod json;
mod log;
mod policies;
mod run;
mod table;
mod words;

use pyo3::prelude::*;

/// The native part of the package.
#[pymodule]
mod _miserly {
    #[pymodule_export]
    use super::error::MiserlyError;
    #[pymodule_export]
    use super::gym::Envs;
    #[pymodule_export]
    use super::log::Log;
    #[pymodule_export]
    use super::policies::{Job, JobOrder};
    #[pymodule_export]
    use super::run::{Comparison, Run, compare, simulate};
    #[pymodule_export]
    use super::table::JobTable;
}
