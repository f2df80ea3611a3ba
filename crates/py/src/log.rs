//! Logs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use clap::Args;
use miserly_core::Procs;
use miserly_import::{ImportOptions, Imported};
use miserly_options::values::procs;
use miserly_options::{By, ModelArgs, ReadArgs, groupings};
use miserly_report::{describe_json, import_summary};
use miserly_run::{Log as SharedLog, RunDoc, RunOptions, RunSetup};
use miserly_workload::{ProcsField, Trace, describe};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use sha2::{Digest, Sha256};

use crate::error::{chained, error, guarded};
use crate::frame::{StreamFrame, column_map, own_names, stream};
use crate::json::to_python;
use crate::signals::{Stop, interruptible};
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

impl ReadWords {
    /// Returns the words, and the column map if it is given as a dict.
    fn new(options: Option<&Bound<'_, PyDict>>) -> PyResult<ReadWords> {
        let columns = match options {
            Some(options) => options.get_item("columns")?,
            None => None,
        };
        let Some(columns) = columns.as_ref().and_then(|columns| columns.cast::<PyDict>().ok()) else {
            return words::parse("Log.read", &[], options);
        };
        let others = options.map(PyDictMethods::copy).transpose()?;
        if let Some(others) = &others {
            others.del_item("columns")?;
        }
        let mut words: ReadWords = words::parse("Log.read", &[], others.as_ref())?;
        if words.read.conversion.preset.is_some() {
            return Err(error("Log.read: give either preset or columns"));
        }
        words.read.conversion.columns = Some(Arc::new(column_map(columns)?));
        Ok(words)
    }

    fn import(&self) -> ImportOptions {
        ImportOptions {
            procs: self.procs,
            lenient: self.lenient,
            keep_ids: true,
            ..self.read.conversion.options()
        }
    }

    /// Refuses the options of a conversion for a log that is read as it is.
    fn refuse_for_swf(&self) -> PyResult<()> {
        let given = [("procs", self.procs.is_some()), ("lenient", self.lenient)];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(error(format!(
                "Log.read: {option}: the log is in the Standard Workload Format, which is read as it is; give {option} to simulate or compare"
            ))),
            None => Ok(()),
        }
    }
}

/// The text and the name of a log, its checksum and the counts of its conversion.
type Parts<'py> = (Bound<'py, PyBytes>, String, String, Option<String>);

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

    fn from_file(path: &Path, words: &ReadWords) -> PyResult<Log> {
        let read = miserly_options::read_log(path, &words.read, &words.import());
        let (trace, report) = read.map_err(|cause| chained(&cause))?;
        if report.is_none() {
            words.refuse_for_swf()?;
        }
        Log::load(trace, report.map(|report| import_summary(&report)))
    }

    /// Converts a data frame. Its columns are read in place, and few jobs are held in memory.
    fn from_frame(mut stream: RecordBatchStreamReader, words: &ReadWords, stop: &Stop) -> PyResult<Log> {
        let map = match words.read.conversion.columns() {
            Some(map) => map,
            None => Arc::new(own_names(&stream.schema())?),
        };
        let converted =
            miserly_import::frame("frame", &mut StreamFrame::new(&mut stream, stop), &map, &words.import());
        let Imported { log, report } = converted.map_err(error)?;
        let trace = Trace::memory("frame", Vec::new()).with_conversion(log);
        let mut hash = Hasher::default();
        trace.write_swf(&mut hash).map_err(error)?;
        let survey = Arc::new(trace.survey().map_err(error)?);
        let shared = SharedLog { trace: Arc::new(trace), survey, sha256: hash.hex() };
        Ok(Log { shared, conversion: Some(import_summary(&report)) })
    }

    /// Returns the measures of the schedule that the log records, by group.
    fn recorded(&self, by: &[By]) -> PyResult<Option<RunDoc>> {
        let setup = RunSetup::shared(&self.shared, RunOptions::default()).map_err(error)?;
        let by = groupings(&setup, by).map_err(error)?;
        setup.grouped(&by).recorded().map_err(error)
    }
}

/// A checksum of what is written.
#[derive(Default)]
struct Hasher(Sha256);

impl Hasher {
    fn hex(self) -> String {
        let mut text = String::new();
        for byte in self.0.finalize() {
            text.push_str(&format!("{byte:02x}"));
        }
        text
    }
}

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[pymethods]
impl Log {
    /// Reads a log of any form that the program reads, or a data frame with `__arrow_c_stream__`, with the options of reading.
    /// `columns` may be a dict of fields and columns.
    #[staticmethod]
    #[pyo3(signature = (source, **options))]
    fn read(py: Python<'_>, source: &Bound<'_, PyAny>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Log> {
        let words = ReadWords::new(options)?;
        if source.hasattr("__arrow_c_stream__")? {
            let stream = stream(source)?;
            return interruptible(py, |stop| Log::from_frame(stream, &words, stop))?;
        }
        let path: PathBuf = source.extract().map_err(|_| {
            PyTypeError::new_err("source: give a path, or a data frame with __arrow_c_stream__, such as of polars, pandas 2.2, pyarrow or duckdb")
        })?;
        py.detach(|| guarded(|| Log::from_file(&path, &words)))
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
        let words: ModelArgs = words::parse("Log.generate", &[], options)?;
        py.detach(|| {
            guarded(|| {
                let log = words.build().and_then(|model| Ok(model.generate()?));
                let mut text = Vec::new();
                log.map_err(|cause| chained(&cause))?.write(&mut text).map_err(error)?;
                Log::load(Trace::memory(&*words.model, text), None)
            })
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
        let mut text = Vec::new();
        self.shared.trace.write_swf(&mut text).map_err(error)?;
        Ok(PyBytes::new(py, &text))
    }

    /// Returns what the program prints by `workload describe --json`. With `by`, it has the waits that the log records by group, as
    /// `compare --by --json` has them.
    #[pyo3(signature = (*, by = None))]
    fn describe<'py>(&self, py: Python<'py>, by: Option<Vec<String>>) -> PyResult<Bound<'py, PyAny>> {
        let by = by.map(|by| words::groups("describe", &by)).transpose()?;
        let (text, recorded) = py.detach(|| {
            guarded(|| {
                let log = describe(&self.shared.trace, None, ProcsField::default()).map_err(error)?;
                let recorded = by.map(|by| self.recorded(&by)).transpose()?;
                Ok((describe_json(&log, &[]).to_string(), recorded))
            })
        })?;
        let document = to_python(py, &text)?;
        if let Some(recorded) = recorded {
            let recorded = recorded.ok_or_else(|| {
                error(format!("{}: by: the log records no waits, so there are none of groups", self.name()))
            })?;
            let groups = serde_json::to_string(&recorded.by).map_err(error)?;
            document.set_item("by", to_python(py, &groups)?)?;
        }
        Ok(document)
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
        let make = slf.get_type().getattr("_restored")?;
        let log = slf.get();
        let (name, sha256) = (log.name().to_owned(), log.shared.sha256.clone());
        Ok((make, (log.to_swf(slf.py())?, name, sha256, log.conversion.clone())))
    }

    /// Makes a log from its pickled parts.
    #[staticmethod]
    fn _restored(text: &[u8], name: &str, sha256: String, conversion: Option<String>) -> PyResult<Log> {
        let log = Log::load(Trace::memory(name, text.to_vec()), conversion)?;
        Ok(Log { shared: SharedLog { sha256, ..log.shared }, ..log })
    }
}
