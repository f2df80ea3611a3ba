//! Runs and comparisons.

use std::sync::{Arc, MutexGuard, PoisonError};

use miserly_core::Time;
use miserly_gym::gate::PolicyKind;
use miserly_gym::score::WindowSet;
use miserly_gym::study::StudyError;
use miserly_machine_file::value_of;
use miserly_options::{ReadArgs, RunArgs};
use miserly_policies::PolicySpec;
use miserly_report::page::fragment;
use miserly_report::{TableStyle, compare_tables, run_sections, simulate_table};
use miserly_run::{RunDoc, RunSetup, differences};
use miserly_sim::{Finished, Grouping, InOrder, JobColumns, Observer, SystemSnapshot};
use miserly_workload::Estimates;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{chained, error};
use crate::json::to_python;
use crate::log::Log;
use crate::policies::{Raised, is_program, policy_name, spec};
use crate::table::JobTable;
use crate::words;

/// Ends a run when Python has a signal, such as that of Ctrl-C, or when a policy raised an error.
struct Interrupt {
    instants: u32,
    raised: Raised,
}

/// The instants between two looks for signals.
const LOOK: u32 = 1024;

impl Interrupt {
    fn raised(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the error of a signal that Python has, such as that of Ctrl-C.
fn signals() -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        Ok(())
    })
}

impl Observer for Interrupt {
    fn instant(&mut self, _now: Time, _snapshot: SystemSnapshot) {
        self.instants = self.instants.wrapping_add(1);
        if self.instants.is_multiple_of(LOOK)
            && let Err(signal) = signals()
        {
            self.raised().get_or_insert(signal);
        }
    }

    fn has_enough(&self) -> bool {
        self.raised().is_some()
    }

    fn finished(&mut self, _job: &Finished) -> std::io::Result<()> {
        Ok(())
    }
}

/// One policy on one log.
#[pyclass(frozen, module = "miserly")]
pub(crate) struct Run {
    document: RunDoc,
    jobs: Py<JobTable>,
}

#[pymethods]
impl Run {
    /// The policy, with its parameters.
    #[getter]
    fn policy(&self) -> &str {
        &self.document.policy
    }

    /// The document of the run, as `miserly simulate --json` prints it.
    #[getter]
    fn document<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.json()?)
    }

    /// The text of the document.
    #[getter]
    fn json(&self) -> PyResult<String> {
        serde_json::to_string_pretty(&self.document).map_err(error)
    }

    /// The finished jobs.
    #[getter]
    fn jobs(&self, py: Python<'_>) -> Py<JobTable> {
        self.jobs.clone_ref(py)
    }

    fn __str__(&self) -> String {
        simulate_table(&self.document, None, TableStyle::default())
    }

    fn __repr__(&self) -> String {
        format!(
            "<Run: {} on {}, {} jobs>",
            self.document.policy, self.document.trace.name, self.document.jobs.simulated
        )
    }

    fn _repr_html_(&self) -> String {
        html(&[&self.document])
    }
}

/// Several policies on one log.
#[pyclass(frozen, module = "miserly")]
pub(crate) struct Comparison {
    runs: Vec<Py<Run>>,
}

impl Comparison {
    fn documents(&self) -> Vec<&RunDoc> {
        self.runs.iter().map(|run| &run.get().document).collect()
    }

    fn policies(&self) -> Vec<&str> {
        self.runs.iter().map(|run| &*run.get().document.policy).collect()
    }
}

#[pymethods]
impl Comparison {
    /// The runs, in the order of the policies.
    #[getter]
    fn runs(&self, py: Python<'_>) -> Vec<Py<Run>> {
        self.runs.iter().map(|run| run.clone_ref(py)).collect()
    }

    /// The paired difference of each pair of runs in each measure, with its 95 % interval.
    #[getter]
    fn differences<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &serde_json::to_string(&differences(&self.documents())).map_err(error)?)
    }

    fn __len__(&self) -> usize {
        self.runs.len()
    }

    fn __getitem__(&self, py: Python<'_>, policy: &str) -> PyResult<Py<Run>> {
        let policies = self.policies();
        match policies.iter().position(|name| *name == policy) {
            Some(position) => Ok(self.runs[position].clone_ref(py)),
            None => Err(PyKeyError::new_err(format!(
                "no run of {policy:?}; the runs are of {}",
                policies.join(", ")
            ))),
        }
    }

    fn __str__(&self) -> String {
        compare_tables(&self.documents(), TableStyle::default())
    }

    fn __repr__(&self) -> String {
        format!("<Comparison: {}>", self.policies().join(", "))
    }

    fn _repr_html_(&self) -> String {
        html(&self.documents())
    }
}

fn html(runs: &[&RunDoc]) -> String {
    fragment(&run_sections(runs, None, TableStyle::default()))
}

/// Returns the setup of a run with these options, and the groupings.
fn prepare(
    function: &str,
    log: &Log,
    by: Option<Vec<String>>,
    details: bool,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<RunSetup> {
    words::refuse::<ReadArgs>("an option of reading; give it to Log.read", options)?;
    let words: RunArgs = words::parse(function, options)?;
    let options = words.single(Estimates::default()).map_err(|cause| chained(&cause))?;
    let by: Vec<Grouping> = by
        .unwrap_or_default()
        .iter()
        .map(|word| word.parse().map_err(|wrong| error(format!("{function}: by: {wrong}"))))
        .collect::<PyResult<_>>()?;
    let setup = RunSetup::shared(&log.shared, options).map_err(error)?;
    Ok(setup.with_details(details).grouped(&by))
}

/// Runs a policy. One that is a program runs twice, and must decide the same.
fn run(py: Python<'_>, setup: &RunSetup, policy: &Bound<'_, PyAny>) -> PyResult<(RunDoc, JobColumns)> {
    let (document, jobs) = run_once(py, setup, policy)?;
    if is_program(policy) {
        let (_, again) = run_once(py, setup, policy)?;
        let mut starts = jobs.number.iter().zip(jobs.start.iter().zip(&again.start));
        if let Some((number, _)) = starts.find(|(_, (one, other))| one.to_bits() != other.to_bits()) {
            let name = &document.policy;
            return Err(error(format!(
                "{name}: it is not deterministic: job {number} starts at another time when the run is repeated"
            )));
        }
    }
    Ok((document, jobs))
}

fn run_once(py: Python<'_>, setup: &RunSetup, policy: &Bound<'_, PyAny>) -> PyResult<(RunDoc, JobColumns)> {
    let raised = Raised::default();
    let policy = spec(policy, setup, &raised)?;
    py.detach(|| {
        let mut interrupt = Interrupt { instants: 0, raised: Arc::clone(&raised) };
        let mut columns = InOrder::new(JobColumns::default());
        let outcome = setup.outcome(&policy, false, &mut [&mut columns, &mut interrupt]);
        match interrupt.raised().take() {
            Some(raised) => Err(raised),
            None => Ok((outcome.map_err(error)?, columns.into_inner())),
        }
    })
}

fn made(py: Python<'_>, (document, jobs): (RunDoc, JobColumns)) -> PyResult<Py<Run>> {
    Py::new(py, Run { document, jobs: Py::new(py, JobTable::new(jobs)?)? })
}

/// Runs one policy on a log, with the options of `miserly simulate`.
#[pyfunction]
#[pyo3(signature = (log, policy, *, by = None, details = false, **options))]
pub(crate) fn simulate(
    py: Python<'_>,
    log: &Log,
    policy: &Bound<'_, PyAny>,
    by: Option<Vec<String>>,
    details: bool,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<Run>> {
    let setup = prepare("simulate", log, by, details, options)?;
    made(py, run(py, &setup, policy)?)
}

/// Runs several policies on a log, with the options of `miserly compare`.
#[pyfunction]
#[pyo3(signature = (log, policies, *, by = None, details = false, **options))]
pub(crate) fn compare(
    py: Python<'_>,
    log: &Log,
    policies: &Bound<'_, PyAny>,
    by: Option<Vec<String>>,
    details: bool,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Comparison> {
    let setup = prepare("compare", log, by, details, options)?;
    let runs = policies.try_iter()?.map(|policy| made(py, run(py, &setup, &policy?)?));
    Ok(Comparison { runs: runs.collect::<PyResult<_>>()? })
}

/// Returns the score of a policy on made windows. `miserly.benchmarks` runs it in a process of its own.
#[pyfunction]
#[pyo3(signature = (policy, *, windows = "training", against = "easy"))]
pub(crate) fn score<'py>(
    py: Python<'py>,
    policy: &Bound<'py, PyAny>,
    windows: &str,
    against: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let set = value_of(&WindowSet::ALL, "windows", windows).map_err(error)?;
    let against: PolicySpec = against.parse().map_err(error)?;
    let name = policy_name(policy)?;
    let kind = if is_program(policy) { PolicyKind::Program } else { PolicyKind::Written };
    let run = |setup: &Arc<RunSetup>| Ok(run(py, setup, policy)?.1);
    let score = miserly_gym::score::score(set, &name, kind, &against, run);
    let score = score.map_err(|Failed(cause)| cause)?;
    to_python(py, &serde_json::to_string(&score).map_err(error)?)
}

/// Why there is no score.
struct Failed(PyErr);

impl From<StudyError> for Failed {
    fn from(cause: StudyError) -> Failed {
        Failed(error(cause))
    }
}

impl From<PyErr> for Failed {
    fn from(cause: PyErr) -> Failed {
        Failed(cause)
    }
}
