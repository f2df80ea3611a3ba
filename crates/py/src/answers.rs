//! Answers to questions about a log: explain, forecast, what-if, and experiments.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{BooleanArray, Float64Array, Int64Array, UInt32Array, UInt64Array};
use clap::Args;
use miserly_core::{JobNumber, Span};
use miserly_experiments::experiment::Watcher;
use miserly_experiments::{ExperimentFile, Session, page, write_page};
use miserly_forecast::{JobDifference, JobForecast};
use miserly_options::run::FEEDBACKS;
use miserly_options::values::words as one_of;
use miserly_options::{By, GroupingParser, RunArgs};
use miserly_policies::PolicySpec;
use miserly_questions::{ChangeArgs, Question};
use miserly_report::page::{Block, Section, fragment, markdown};
use miserly_report::{TableStyle, forecast_page, what_if_sections, what_if_table};
use miserly_sim::Observer;
use miserly_workload::Feedback;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

use crate::error::{chained, error};
use crate::json::to_python;
use crate::log::Log;
use crate::policies::{Shift, secs};
use crate::run::{prepared, run_words, with_policy};
use crate::signals::{Stop, StopWatch, interruptible};
use crate::table::{JobTable, NamedColumn};

/// The answer to a question: a document, a text and a part of a notebook.
#[pyclass(frozen, module = "miserly")]
pub(crate) struct Answer {
    /// The text of the document, as the program prints it.
    #[pyo3(get)]
    json: String,
    text: String,
    html: String,
    /// The jobs, where the answer has some.
    #[pyo3(get)]
    jobs: Option<Py<JobTable>>,
}

#[pymethods]
impl Answer {
    /// The document, as the program prints it with `--json`.
    #[getter]
    fn document<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.json)
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<Answer: {}>", self.text.lines().next().unwrap_or_default())
    }

    fn _repr_html_(&self) -> &str {
        &self.html
    }

    /// Returns the function that makes the answer again, and its arguments, for pickle.
    fn __reduce__<'py>(slf: &Bound<'py, Answer>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        let Answer { json, text, html, jobs } = slf.get();
        let jobs = jobs.as_ref().map(|jobs| jobs.clone_ref(slf.py()));
        Ok((slf.get_type().getattr("_restored")?, (json.clone(), text.clone(), html.clone(), jobs)))
    }

    /// Makes an answer from its pickled parts.
    #[staticmethod]
    fn _restored(json: String, text: String, html: String, jobs: Option<Py<JobTable>>) -> Answer {
        Answer { json, text, html, jobs }
    }
}

/// The document, the text, the page and the columns of an answer.
type Parts = (String, String, String, Option<Py<JobTable>>);

/// The style of texts: that of the program in a pipe.
fn style() -> TableStyle {
    TableStyle { width: Some(WIDTH), ..TableStyle::default() }
}

const WIDTH: usize = 80;

fn json(document: &impl Serialize) -> PyResult<String> {
    serde_json::to_string_pretty(document).map_err(error)
}

fn answer(
    py: Python<'_>,
    (json, text, html): (String, String, String),
    columns: Vec<NamedColumn>,
) -> PyResult<Answer> {
    let jobs = Py::new(py, JobTable::from_columns(columns)?)?;
    Ok(Answer { json, text, html, jobs: Some(jobs) })
}

/// Returns a policy in its written form. The futures of a forecast have no functions of Python.
fn written(policy: &str) -> PyResult<PolicySpec> {
    policy.parse().map_err(error)
}

/// Forecasts the wait of each job of a log at its submission, and audits the forecasts, with the options of `miserly forecast`.
/// The policy is in its written form.
#[pyfunction]
#[pyo3(signature = (log, policy, *, draws = 20, **options))]
pub(crate) fn forecast(
    py: Python<'_>,
    log: &Log,
    policy: &str,
    draws: u64,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Answer> {
    let words: RunArgs = run_words("forecast", &[], options)?;
    if !(1..=10_000).contains(&draws) {
        return Err(error(format!("forecast: draws: {draws} is not from 1 to 10000")));
    }
    let setup = prepared(log, &words)?;
    let policy = written(policy)?;
    let made = interruptible(py, |stop| {
        miserly_questions::forecast(&setup, &policy, draws, &mut |_| stop.check()).map_err(error)
    })??;
    let page = forecast_page(&made.document, &made.machine, setup.dates().as_ref(), Vec::new());
    let texts = (json(&made.document)?, made.table(style()), fragment(&page.sections));
    answer(py, texts, forecast_columns(&made.jobs))
}

fn forecast_columns(jobs: &[JobForecast]) -> Vec<NamedColumn> {
    let known =
        |value: fn(&JobForecast) -> Option<u64>| Arc::new(jobs.iter().map(value).collect::<UInt64Array>());
    vec![
        ("job".into(), Arc::new(jobs.iter().map(|job| Some(job.number)).collect::<Int64Array>())),
        ("submit".into(), Arc::new(jobs.iter().map(|job| Some(secs(job.submit))).collect::<Float64Array>())),
        ("procs".into(), known(|job| Some(job.procs))),
        ("at_once".into(), Arc::new(jobs.iter().map(|job| Some(job.at_once)).collect::<BooleanArray>())),
        ("median".into(), known(|job| Some(job.bounds[0]))),
        ("bound_80".into(), known(|job| Some(job.bounds[1]))),
        ("bound_95".into(), known(|job| Some(job.bounds[2]))),
        ("promise".into(), known(|job| job.promise)),
        ("bmbp".into(), known(|job| job.bmbp)),
        ("wait".into(), known(|job| job.wait)),
    ]
}

/// The options of a what-if question.
#[derive(Debug, Args)]
struct WhatIfWords {
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    run: RunArgs,
    #[arg(long, value_parser = one_of(&FEEDBACKS))]
    feedback: Option<Feedback>,
    #[arg(long, value_parser = GroupingParser)]
    by: Option<By>,
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(..=1000))]
    copies: u64,
    /// The log, which Python gives as an object.
    #[arg(long, hide = true)]
    trace: String,
}

/// Returns the difference that a change makes to a log, with the options of `miserly what-if`: a second policy, a machine
/// (`new_procs`, `new_machine`, `add_hosts`, `lose`), a `load`, `without_user`, or a further job (`cpus`, `time`). The policies are
/// in their written form.
#[pyfunction]
#[pyo3(signature = (log, policy, new_policy = None, **options))]
pub(crate) fn what_if(
    py: Python<'_>,
    log: &Log,
    policy: &str,
    new_policy: Option<&str>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Answer> {
    let words: WhatIfWords = run_words("what_if", &["--trace=log"], options)?;
    let policies = std::iter::once(policy).chain(new_policy).map(written).collect::<PyResult<Vec<_>>>()?;
    let setup = prepared(log, &words.run)?;
    let made = interruptible(py, |stop| {
        let WhatIfWords { change, feedback, by, copies, .. } = &words;
        let question =
            Question { policies: &policies, change, feedback: *feedback, by: *by, copies: *copies };
        question.answer(setup, &|_| stop.check()).map_err(|cause| chained(&cause))
    })??;
    let (document, style) = (&made.document, style());
    let texts =
        (json(document)?, what_if_table(document, style), fragment(&what_if_sections(document, style)));
    answer(py, texts, what_if_columns(&made.jobs))
}

fn what_if_columns(jobs: &[JobDifference]) -> Vec<NamedColumn> {
    let known = |value: fn(&JobDifference) -> Option<Span>| {
        Arc::new(jobs.iter().map(|job| value(job).map(Span::as_secs_f64)).collect::<Float64Array>())
    };
    vec![
        ("job".into(), Arc::new(jobs.iter().map(|job| Some(job.number)).collect::<Int64Array>())),
        ("submit".into(), Arc::new(jobs.iter().map(|job| Some(secs(job.submit))).collect::<Float64Array>())),
        ("procs".into(), Arc::new(jobs.iter().map(|job| Some(job.procs)).collect::<UInt64Array>())),
        ("user".into(), Arc::new(jobs.iter().map(|job| job.user).collect::<UInt32Array>())),
        ("wait_without".into(), known(|job| job.before)),
        ("wait_with".into(), known(|job| job.after)),
        ("difference".into(), known(JobDifference::difference)),
        ("least".into(), known(|job| job.range.map(|range| range[0]))),
        ("largest".into(), known(|job| job.range.map(|range| range[1]))),
    ]
}

/// Returns the history of a job under a policy, with the options of `miserly explain`. `seconds` leaves out dates.
#[pyfunction]
#[pyo3(signature = (log, job, policy, *, seconds = false, **options))]
pub(crate) fn explain(
    py: Python<'_>,
    log: &Log,
    job: JobNumber,
    policy: &Bound<'_, PyAny>,
    seconds: bool,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Answer> {
    let words: RunArgs = run_words("explain", &[], options)?;
    let setup = prepared(log, &words)?;
    with_policy(py, &setup, policy, Shift::NONE, |policy, interrupt| {
        let made = miserly_questions::explain(&setup, policy, job, &mut [interrupt]);
        let made = made.map_err(|cause| chained(&cause))?;
        let text = made.text(WIDTH, seconds);
        let html = format!("<pre>{}</pre>", text.replace('&', "&amp;").replace('<', "&lt;"));
        Ok(Answer { json: json(&made)?, text, html, jobs: None })
    })
}

/// Watches the runs of an experiment for signals.
struct Watch<'a>(&'a Stop);

impl Watcher for Watch<'_> {
    fn observer(&self) -> Box<dyn Observer + '_> {
        Box::new(StopWatch(self.0))
    }
}

/// Makes the missing runs of an experiment file, writes its folder as `miserly experiment run` does, and returns its page.
#[pyfunction]
#[pyo3(signature = (file, *, output = None, traces = None, bars = false))]
pub(crate) fn experiment(
    py: Python<'_>,
    file: PathBuf,
    output: Option<PathBuf>,
    traces: Option<PathBuf>,
    bars: bool,
) -> PyResult<Answer> {
    let opened = ExperimentFile::open(&file, output.as_deref(), traces.as_deref()).map_err(error)?;
    let ExperimentFile { experiment, folders, folder, command } = opened;
    for missing in experiment.missing_logs(&folders) {
        let text = format!("{}: {missing} not found, so its tables are left out", experiment.name);
        let category = py.get_type::<PyUserWarning>();
        py.import("warnings")?.call_method1("warn", (text, category))?;
    }
    let page = interruptible(py, |stop| {
        let session = Session::new(experiment, &folders, &folder, &command).map_err(error)?;
        session.run(&Watch(stop)).map_err(error)?;
        let page = page(&folder, bars).map_err(error)?;
        write_page(&folder, &page).map_err(error)?;
        Ok::<_, PyErr>(page)
    })??;
    let of_notebook = |section: &Section| Section {
        heading: String::new(),
        blocks: std::iter::once(Block::Heading(section.heading.clone()))
            .chain(section.blocks.clone())
            .collect(),
    };
    let sections: Vec<Section> = page.sections.iter().map(of_notebook).collect();
    Ok(Answer { json: json(&page)?, text: markdown(&page), html: fragment(&sections), jobs: None })
}
