//! Expressions over a job: what a lambda computes, as a formula.

// Methods of objects in Python have an object.
#![allow(clippy::unused_self)]

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The names of formulas that expressions have, in the order of their values.
pub(crate) const NAMES: [&str; 4] = ["wait", "estimate", "procs", "submit"];

/// The largest whole number that a formula has exactly.
const LARGEST: i64 = 1 << 53;

/// A value of an expression. It has the operators that mean the same in Python and in a formula, and no others.
#[pyclass(frozen, module = "miserly")]
pub(crate) struct Symbol {
    text: String,
    is_now: bool,
}

/// A job whose values are [`Symbol`]s.
#[pyclass(frozen, module = "miserly")]
pub(crate) struct SymbolicJob;

/// Returns the error for what no formula has. It is no `AttributeError`, which `getattr` with a default hides.
fn no_formula(what: &str) -> PyErr {
    PyTypeError::new_err(format!("{what} has no formula"))
}

fn symbol(text: impl Into<String>) -> Symbol {
    Symbol { text: text.into(), is_now: false }
}

/// Returns a value of Python as a part of a formula.
fn operand(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(symbol) = value.cast::<Symbol>() {
        return symbol.get().plain().map(str::to_owned);
    }
    if let Ok(number) = value.extract::<i64>()
        && (-LARGEST..=LARGEST).contains(&number)
    {
        return Ok(format!("({number})"));
    }
    match value.extract::<f64>() {
        Ok(number) if number.is_finite() => Ok(format!("({number:?})")),
        _ => Err(no_formula("this value")),
    }
}

impl Symbol {
    /// Returns the text; the present time alone has none.
    fn plain(&self) -> PyResult<&str> {
        if self.is_now { Err(no_formula("now, except in now - job.submit,")) } else { Ok(&self.text) }
    }

    fn with(&self, operator: &str, other: &Bound<'_, PyAny>) -> PyResult<Symbol> {
        Ok(symbol(format!("({} {operator} {})", self.plain()?, operand(other)?)))
    }

    fn behind(&self, operator: &str, other: &Bound<'_, PyAny>) -> PyResult<Symbol> {
        Ok(symbol(format!("({} {operator} {})", operand(other)?, self.plain()?)))
    }
}

#[pymethods]
impl Symbol {
    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Symbol> {
        self.with("+", other)
    }

    fn __radd__(&self, other: &Bound<'_, PyAny>) -> PyResult<Symbol> {
        self.behind("+", other)
    }

    fn __sub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Symbol> {
        let is_submit = other.cast::<Symbol>().is_ok_and(|other| other.get().text == "submit");
        if self.is_now && is_submit { Ok(symbol("wait")) } else { self.with("-", other) }
    }

    fn __rsub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Symbol> {
        self.behind("-", other)
    }

    fn __mul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Symbol> {
        self.with("*", other)
    }

    fn __rmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Symbol> {
        self.behind("*", other)
    }

    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Symbol> {
        self.with("/", other)
    }

    fn __rtruediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Symbol> {
        self.behind("/", other)
    }

    fn __neg__(&self) -> PyResult<Symbol> {
        Ok(symbol(format!("(-{})", self.plain()?)))
    }

    fn __pos__(&self) -> PyResult<Symbol> {
        Ok(symbol(self.plain()?))
    }

    fn __abs__(&self) -> PyResult<Symbol> {
        Ok(symbol(format!("abs({})", self.plain()?)))
    }

    // What every object has, and would not mean the same.

    fn __bool__(&self) -> PyResult<bool> {
        Err(no_formula("a condition"))
    }

    fn __richcmp__(&self, _other: &Bound<'_, PyAny>, _operator: pyo3::basic::CompareOp) -> PyResult<bool> {
        Err(no_formula("a comparison"))
    }

    fn __hash__(&self) -> PyResult<isize> {
        Err(no_formula("a key"))
    }

    fn __str__(&self) -> PyResult<String> {
        Err(no_formula("a text"))
    }

    fn __repr__(&self) -> PyResult<String> {
        Err(no_formula("a text"))
    }
}

#[pymethods]
impl SymbolicJob {
    #[getter]
    fn submit(&self) -> Symbol {
        symbol("submit")
    }

    #[getter]
    fn procs(&self) -> Symbol {
        symbol("procs")
    }

    #[getter]
    fn estimate(&self) -> Symbol {
        symbol("estimate")
    }

    fn __getattr__(&self, name: &str) -> PyResult<Symbol> {
        Err(no_formula(name))
    }
}

/// Returns the formula of a lambda; `None` if it has none. `now` is its second argument, if it has one.
pub(crate) fn formula_of(key: &Bound<'_, PyAny>, has_now: bool) -> Option<String> {
    let name: String = key.getattr("__name__").ok()?.extract().ok()?;
    // A function of several statements may do more than compute.
    if name != "<lambda>" {
        return None;
    }
    let py = key.py();
    let job = Py::new(py, SymbolicJob).ok()?;
    let value = if has_now {
        key.call((job, Symbol { text: String::new(), is_now: true }), None::<&Bound<'_, PyDict>>)
    } else {
        key.call1((job,))
    };
    let value = value.ok()?;
    let symbol = value.cast::<Symbol>().ok()?;
    symbol.get().plain().ok().map(str::to_owned)
}
