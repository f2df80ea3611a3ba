//! Logs.

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use miserly_core::Procs;
use miserly_import::ImportOptions;
use miserly_options::values::procs;
use miserly_options::{ModelArgs, ReadArgs};
use miserly_report::{describe_json, import_summary};
use miserly_run::Log as SharedLog;
use miserly_workload::{ProcsField, Trace, describe};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::{chained, error};
use crate::json::to_python;
use crate::words;

/// The options of reading a log.
#[derive(Debug, Args)]
struct ReadWords {
    #[command(flatten)]
    read: ReadArgs,
    #[arg(long)]
    lenient: bool,
    #[arg(long, value_parser = procs())]
    procs: Option<Procs>,
}

/// The text and the name of a log.
type Parts<'py> = (Bound<'py, PyBytes>, String);

/// A job log, in memory.
#[pyclass(frozen, module = "miserly")]
pub(crate) struct Log {
    pub(crate) shared: SharedLog,
    /// The counts of the conversion, if the file had another form.
    #[pyo3(get)]
    conversion: Option<String>,
}

impl Log {
    /// Returns a log in memory, with the counts of its conversion.
    fn load(trace: Trace, conversion: Option<String>) -> PyResult<Log> {
        Ok(Log { shared: SharedLog::load(trace).map_err(error)?, conversion })
    }
}

/// Returns the text of a log.
fn text(trace: &Trace) -> PyResult<Vec<u8>> {
    let mut text = Vec::new();
    trace.unpacked().map_err(error)?.read_to_end(&mut text).map_err(error)?;
    Ok(text)
}

#[pymethods]
impl Log {
    /// Reads a log of any form that the program reads, with the options of reading.
    #[staticmethod]
    #[pyo3(signature = (path, **options))]
    fn read(py: Python<'_>, path: PathBuf, options: Option<&Bound<'_, PyDict>>) -> PyResult<Log> {
        let words: ReadWords = words::parse("Log.read", options)?;
        py.detach(|| {
            let import = ImportOptions {
                procs: words.procs,
                lenient: words.lenient,
                keep_ids: true,
                ..words.read.conversion.options()
            };
            let (trace, report) =
                miserly_options::read_log(&path, &words.read, &import).map_err(|cause| chained(&cause))?;
            let trace =
                Trace::memory(trace.name(), text(&trace)?).filling_missing_fields(words.read.missing_fields);
            Log::load(trace, report.map(|report| import_summary(&report)))
        })
    }

    /// Takes text in the Standard Workload Format.
    #[staticmethod]
    #[pyo3(signature = (text, name = "log"))]
    fn from_swf(text: &Bound<'_, PyAny>, name: &str) -> PyResult<Log> {
        let text = match text.extract::<&[u8]>() {
            Ok(bytes) => bytes.to_vec(),
            Err(_) => text.extract::<String>()?.into_bytes(),
        };
        Log::load(Trace::memory(name, text), None)
    }

    /// Generates a log by a workload model, with the options of `miserly workload generate`.
    #[staticmethod]
    #[pyo3(signature = (**options))]
    fn generate(py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Log> {
        let words: ModelArgs = words::parse("Log.generate", options)?;
        py.detach(|| {
            let log =
                words.build().and_then(|model| Ok(model.generate()?)).map_err(|cause| chained(&cause))?;
            let mut text = Vec::new();
            log.write(&mut text).map_err(error)?;
            Log::load(Trace::memory(&*words.model, text), None)
        })
    }

    /// The name of the log.
    #[getter]
    fn name(&self) -> &str {
        self.shared.trace.name()
    }

    /// The processors of the machine in its header, if any.
    #[getter]
    fn procs(&self) -> Option<u64> {
        self.shared.survey.header.procs().map(Procs::get)
    }

    /// The SHA-256 of the text.
    #[getter]
    fn sha256(&self) -> &str {
        &self.shared.sha256
    }

    /// Returns the text of the log, in the Standard Workload Format.
    fn to_swf<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &text(&self.shared.trace)?))
    }

    /// Returns what the program prints by `workload describe --json`.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let log = describe(&self.shared.trace, None, ProcsField::default()).map_err(error)?;
        to_python(py, &describe_json(&log, &[]).to_string())
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.shared.survey.records).unwrap_or(usize::MAX)
    }

    fn __repr__(&self) -> String {
        let procs = self.procs().map_or_else(String::new, |procs| format!(", {procs} processors"));
        format!("<Log {:?}: {} jobs{procs}>", self.name(), self.__len__())
    }

    /// Returns the function that makes the log again, and its arguments, for pickle.
    fn __reduce__<'py>(slf: &Bound<'py, Log>) -> PyResult<(Bound<'py, PyAny>, Parts<'py>)> {
        let make = slf.get_type().getattr("from_swf")?;
        let log = slf.get();
        Ok((make, (log.to_swf(slf.py())?, log.name().to_owned())))
    }
}
