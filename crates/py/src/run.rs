//! Runs and comparisons.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::{Args, FromArgMatches};
use miserly_core::Time;
use miserly_experiments::{LogRuns, Recording};
use miserly_gym::gate::PolicyKind;
use miserly_gym::score::WindowSet;
use miserly_gym::study::StudyError;
use miserly_machine_file::value_of;
use miserly_options::values::seconds;
use miserly_options::{ReadArgs, RunArgs, groupings};
use miserly_policies::PolicySpec;
use miserly_report::chart::{Chart, svg};
use miserly_report::page::{Block, Section, fragment};
use miserly_report::{TableStyle, compare_tables, run_sections, simulate_table};
use miserly_run::{RunDoc, RunSetup, differences};
use miserly_sim::{Finished, InOrder, JobColumns, Observer, SystemSnapshot};
use miserly_workload::Estimates;
use pyo3::exceptions::{PyException, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{chained, error, guarded};
use crate::json::to_python;
use crate::log::Log;
use crate::policies::{Raised, Shift, as_it_is, is_program, policy_name, spec, uses_numbers};
use crate::signals::signals;
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

/// What was asked for: with it, a run is made again for its chart.
struct Request {
    log: Py<Log>,
    policy: Py<PyAny>,
    by: Option<Vec<String>>,
    details: bool,
    options: Option<Py<PyDict>>,
}

/// One policy on one log.
#[pyclass(frozen, module = "miserly")]
pub(crate) struct Run {
    document: RunDoc,
    /// The text of the document. Numbers that are read again may differ in the last digit.
    json: String,
    jobs: Py<JobTable>,
    request: Request,
    /// The run with its details, and the recording for its chart, once they are asked for.
    recording: Mutex<Option<Arc<(RunDoc, Recording)>>>,
}

/// The pickled parts of a run: log, policy, groups, details, options, document and jobs.
type Parts = (Py<Log>, Py<PyAny>, Option<Vec<String>>, bool, Option<Py<PyDict>>, String, Py<JobTable>);

impl Run {
    /// Returns the recording of the run, which is made by a second one.
    fn recorded(&self, py: Python<'_>) -> PyResult<Arc<(RunDoc, Recording)>> {
        let known = || self.recording.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(recording) = &*known() {
            return Ok(Arc::clone(recording));
        }
        let Request { log, policy, details: _, by: _, options } = &self.request;
        let options = options.as_ref().map(|options| options.bind(py));
        let setup = prepare("gantt", log.get(), None, true, options)?;
        let mut recording = Recording::default();
        let made = play(py, &setup, &as_it_is(policy.bind(py)), Shift::NONE, true, &mut recording)?;
        let made = Arc::new((made, recording));
        *known() = Some(Arc::clone(&made));
        Ok(made)
    }
}

/// Returns the schedules of some runs of one log as charts, in one window.
fn schedules(py: Python<'_>, runs: &[&Run], window: Option<[i64; 2]>) -> PyResult<Vec<Chart>> {
    let recordings: Vec<_> = runs.iter().map(|run| run.recorded(py)).collect::<PyResult<_>>()?;
    let runs = recordings.iter().map(|made| (&made.0, &made.1)).collect();
    let log =
        LogRuns { recorded: None, recorded_jobs: None, verdict: None, by: Vec::new(), groups: "", runs };
    Ok(log.schedules(window))
}

/// Returns the tables and the schedules of some runs of one log, for a notebook. A run that cannot be repeated has no schedule.
///
/// # Errors
/// A signal, such as Ctrl-C.
fn html(py: Python<'_>, runs: &[&Run]) -> PyResult<String> {
    let documents: Vec<&RunDoc> = runs.iter().map(|run| &run.document).collect();
    let mut sections = run_sections(&documents, None, TableStyle::default());
    let charts = match schedules(py, runs, None) {
        Err(signal) if !signal.is_instance_of::<PyException>(py) => return Err(signal),
        made => made.unwrap_or_default(),
    };
    sections.push(Section { heading: String::new(), blocks: charts.into_iter().map(Block::Chart).collect() });
    Ok(fragment(&sections))
}

/// Returns a window in the seconds of the log: two numbers, or durations such as "2d".
fn window(given: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>) -> PyResult<Option<[i64; 2]>> {
    let Some((from, to)) = given else { return Ok(None) };
    let time = |value: &Bound<'_, PyAny>| {
        seconds(&value.str()?.to_string()).map_err(|wrong| error(format!("window: {wrong}")))
    };
    let (from, to) = (time(&from)?, time(&to)?);
    if from < to { Ok(Some([from, to])) } else { Err(error("window: its end must be after its start")) }
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
        to_python(py, &self.json)
    }

    /// The text of the document.
    #[getter]
    fn json(&self) -> &str {
        &self.json
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

    /// Returns the jobs on the processors as SVG, in a window of two times of the log, such as (0, "2d"); else on the day of the
    /// longest queue.
    #[pyo3(signature = (window = None))]
    fn gantt(
        &self,
        py: Python<'_>,
        window: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    ) -> PyResult<String> {
        let charts = schedules(py, &[self], self::window(window)?)?;
        Ok(charts.first().map(svg).unwrap_or_default())
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        html(py, &[self])
    }

    /// Returns the function that makes the run again, and its arguments, for pickle.
    fn __reduce__<'py>(slf: &Bound<'py, Run>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        let (py, run) = (slf.py(), slf.get());
        let Request { log, policy, by, details, options } = &run.request;
        let options = options.as_ref().map(|options| options.clone_ref(py));
        let jobs = run.jobs.clone_ref(py);
        let parts =
            (log.clone_ref(py), policy.clone_ref(py), by.clone(), *details, options, run.json.clone(), jobs);
        Ok((slf.get_type().getattr("_restored")?, parts))
    }

    /// Makes a run from its pickled parts.
    #[staticmethod]
    fn _restored(
        log: Py<Log>,
        policy: Py<PyAny>,
        by: Option<Vec<String>>,
        details: bool,
        options: Option<Py<PyDict>>,
        json: String,
        jobs: Py<JobTable>,
    ) -> PyResult<Run> {
        let document = serde_json::from_str(&json).map_err(error)?;
        let request = Request { log, policy, by, details, options };
        Ok(Run { document, json, jobs, request, recording: Mutex::default() })
    }
}

/// The pickled parts of a comparison.
type Runs = (Vec<Py<Run>>,);

/// Several policies on one log.
#[pyclass(frozen, module = "miserly")]
pub(crate) struct Comparison {
    runs: Vec<Py<Run>>,
}

impl Comparison {
    fn documents(&self) -> Vec<&RunDoc> {
        self.runs.iter().map(|run| &run.get().document).collect()
    }

    fn each(&self) -> Vec<&Run> {
        self.runs.iter().map(Py::get).collect()
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

    /// Returns the schedule of each policy as SVG, in one window.
    #[pyo3(signature = (window = None))]
    fn gantt(
        &self,
        py: Python<'_>,
        window: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    ) -> PyResult<Vec<String>> {
        Ok(schedules(py, &self.each(), self::window(window)?)?.iter().map(svg).collect())
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        html(py, &self.each())
    }

    /// Returns the function that makes the comparison again, and its arguments, for pickle.
    fn __reduce__<'py>(slf: &Bound<'py, Comparison>) -> PyResult<(Bound<'py, PyAny>, Runs)> {
        Ok((slf.get_type().getattr("_restored")?, (slf.get().runs(slf.py()),)))
    }

    /// Makes a comparison from its runs.
    #[staticmethod]
    fn _restored(runs: Vec<Py<Run>>) -> Comparison {
        Comparison { runs }
    }
}

/// Returns the setup of a run with these options, and the groupings.
fn prepare(
    function: &str,
    log: &Log,
    by: Option<&[String]>,
    details: bool,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<RunSetup> {
    let words: RunArgs = run_words(function, &[], options)?;
    let by = words::groups(function, by.unwrap_or_default())?;
    let setup = prepared(log, &words)?;
    let by = groupings(&setup, &by).map_err(error)?;
    Ok(setup.with_details(details).grouped(&by))
}

/// Returns the options of a run. Those of reading are refused: the log has been read.
pub(crate) fn run_words<A: Args + FromArgMatches>(
    function: &str,
    words: &[&str],
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<A> {
    words::refuse::<ReadArgs>("an option of reading; give it to Log.read", options)?;
    words::parse(function, words, options)
}

/// Returns the setup of a run with these options.
pub(crate) fn prepared(log: &Log, words: &RunArgs) -> PyResult<RunSetup> {
    let options = words.single(Estimates::default()).map_err(|cause| chained(&cause))?;
    RunSetup::shared(&log.shared, options).map_err(error)
}

/// Checks that a policy which is a program decides the same when it runs again, with other numbers of the jobs.
fn check_repeated(
    py: Python<'_>,
    setup: &RunSetup,
    policy: &Bound<'_, PyAny>,
    name: &str,
    jobs: &JobColumns,
) -> PyResult<()> {
    let again = |policy: &Bound<'_, PyAny>, shift| match run_once(py, setup, policy, shift) {
        Ok((_, again)) => Ok(difference(jobs, &again)),
        Err(cause) if cause.is_instance_of::<PyException>(py) => {
            Ok(Some(format!("the run ends with {cause}")))
        }
        Err(signal) => Err(signal),
    };
    let shift = if uses_numbers(policy)? { Shift::NONE } else { Shift::OTHERS };
    let Some(mut what) = again(&as_it_is(policy), shift)? else { return Ok(()) };
    if shift == Shift::OTHERS {
        match again(policy, Shift::NONE)? {
            Some(repeated) => what = repeated,
            None => {
                return Err(error(format!(
                    "{name}: its decisions depend on the numbers of jobs, so it may know what it does not see: with other numbers {what}; if that is meant, set uses_numbers to True"
                )));
            }
        }
    }
    Err(error(format!("{name}: it is not deterministic: when the run is repeated, {what}")))
}

/// Returns the first difference of two runs, in words.
fn difference(jobs: &JobColumns, again: &JobColumns) -> Option<String> {
    let mut starts = jobs.number.iter().zip(jobs.start.iter().zip(&again.start));
    let (number, _) = starts.find(|(_, (one, other))| one.to_bits() != other.to_bits())?;
    Some(format!("job {number} starts at another time"))
}

fn run_once(
    py: Python<'_>,
    setup: &RunSetup,
    policy: &Bound<'_, PyAny>,
    shift: Shift,
) -> PyResult<(RunDoc, JobColumns)> {
    let mut columns = InOrder::new(JobColumns::default());
    let document = play(py, setup, policy, shift, false, &mut columns)?;
    Ok((document, columns.into_inner()))
}

/// Runs a policy with an observer. With `pes`, it sees the processors of each job by number.
fn play(
    py: Python<'_>,
    setup: &RunSetup,
    policy: &Bound<'_, PyAny>,
    shift: Shift,
    pes: bool,
    observer: &mut (dyn Observer + Send),
) -> PyResult<RunDoc> {
    with_policy(py, setup, policy, shift, |policy, interrupt| {
        setup.outcome(policy, pes, &mut [observer, interrupt]).map_err(error)
    })
}

/// Does what needs a policy, and an observer that ends the run at a signal or when the policy raises an error.
pub(crate) fn with_policy<T: Send>(
    py: Python<'_>,
    setup: &RunSetup,
    policy: &Bound<'_, PyAny>,
    shift: Shift,
    work: impl FnOnce(&PolicySpec, &mut dyn Observer) -> PyResult<T> + Send,
) -> PyResult<T> {
    let raised = Raised::default();
    let policy = spec(policy, setup, &raised, shift)?;
    py.detach(|| {
        let mut interrupt = Interrupt { instants: 0, raised };
        let made = guarded(|| work(&policy, &mut interrupt));
        let raised = interrupt.raised().take();
        match raised {
            Some(raised) => Err(raised),
            None => made,
        }
    })
}

/// Makes the run of a policy.
fn made(
    log: &Bound<'_, Log>,
    setup: &RunSetup,
    policy: &Bound<'_, PyAny>,
    by: Option<&[String]>,
    details: bool,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<Run>> {
    let py = log.py();
    // The repetition and the drawn schedule are other runs, which begin as this one.
    let before = as_it_is(policy);
    let (document, jobs) = run_once(py, setup, policy, Shift::NONE)?;
    if is_program(policy) {
        check_repeated(py, setup, &before, &document.policy, &jobs)?;
    }
    let request = Request {
        log: log.clone().unbind(),
        policy: before.unbind(),
        by: by.map(<[String]>::to_vec),
        details,
        options: options.map(|options| options.clone().unbind()),
    };
    let jobs = Py::new(py, JobTable::new(jobs)?)?;
    let json = serde_json::to_string_pretty(&document).map_err(error)?;
    Py::new(py, Run { document, json, jobs, request, recording: Mutex::default() })
}

/// Runs one policy on a log, with the options of `miserly simulate`.
#[pyfunction]
#[pyo3(signature = (log, policy, *, by = None, details = false, **options))]
pub(crate) fn simulate(
    log: &Bound<'_, Log>,
    policy: &Bound<'_, PyAny>,
    by: Option<Vec<String>>,
    details: bool,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<Run>> {
    let setup = prepare("simulate", log.get(), by.as_deref(), details, options)?;
    made(log, &setup, policy, by.as_deref(), details, options)
}

/// Runs several policies on a log, with the options of `miserly compare`.
#[pyfunction]
#[pyo3(signature = (log, policies, *, by = None, details = false, **options))]
pub(crate) fn compare(
    log: &Bound<'_, Log>,
    policies: &Bound<'_, PyAny>,
    by: Option<Vec<String>>,
    details: bool,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Comparison> {
    let setup = prepare("compare", log.get(), by.as_deref(), details, options)?;
    let runs =
        policies.try_iter()?.map(|policy| made(log, &setup, &policy?, by.as_deref(), details, options));
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
    // The gate finds what the repetition of a run finds.
    let run = |setup: &Arc<RunSetup>| Ok(run_once(py, setup, &as_it_is(policy), Shift::NONE)?.1);
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
