//! Policies that are written in Python.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use miserly_core::{
    Context, Event, Expected, JobId, Ledger, Policy, Request, StartReason, State, Time, Violation,
};
use miserly_policies::backfill::{BackfillRules, Fcfs, ReservationDepth, backfill};
use miserly_policies::{Needs, Order, PolicySpec};
use miserly_run::RunSetup;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::error;

/// A job as a policy sees it. Times are in seconds of the log. The runtime is not known.
#[pyclass(frozen, get_all, module = "miserly")]
#[derive(Clone)]
pub(crate) struct Job {
    number: i64,
    submit: f64,
    procs: u64,
    estimate: f64,
    user: Option<u32>,
    group: Option<u32>,
    queue: Option<u32>,
    /// The expected end by the estimate, if the job runs.
    expected_end: Option<f64>,
}

impl Job {
    fn new(request: &Request, expected_end: Option<Time>) -> Job {
        Job {
            number: request.number,
            submit: secs(request.submit),
            procs: request.procs().get(),
            estimate: request.estimate.as_secs_f64(),
            user: request.user,
            group: request.group,
            queue: request.queue,
            expected_end: expected_end.map(secs),
        }
    }
}

#[pymethods]
impl Job {
    fn __repr__(&self) -> String {
        let Job { number, submit, procs, estimate, .. } = self;
        format!("<Job {number}: {procs} processors, {estimate} s, submitted at {submit}>")
    }
}

fn secs(time: Time) -> f64 {
    (time - Time::ZERO).as_secs_f64()
}

/// An order of the queue by a function of a job. The smallest value comes first.
///
/// The function is called once for each job, before the run. `backfill` is "easy", "conservative" or "none".
#[pyclass(frozen, module = "miserly")]
pub(crate) struct JobOrder {
    key: Py<PyAny>,
    backfill: Backfill,
    name: String,
}

#[derive(Clone, Copy)]
enum Backfill {
    None,
    Easy,
    Conservative,
}

#[pymethods]
impl JobOrder {
    #[new]
    #[pyo3(signature = (key, *, backfill = "easy", name = None))]
    fn new(key: Bound<'_, PyAny>, backfill: &str, name: Option<String>) -> PyResult<JobOrder> {
        if !key.is_callable() {
            return Err(PyTypeError::new_err("key: give a function of a job"));
        }
        let backfill = match backfill {
            "none" => Backfill::None,
            "easy" => Backfill::Easy,
            "conservative" => Backfill::Conservative,
            other => {
                return Err(error(format!(
                    "backfill: no {other:?}; it must be one of easy, conservative, none"
                )));
            }
        };
        let named =
            || key.getattr("__name__").and_then(|name| name.extract()).unwrap_or_else(|_| "order".into());
        let name = name.unwrap_or_else(named);
        Ok(JobOrder { key: key.unbind(), backfill, name })
    }

    fn __repr__(&self) -> String {
        format!("<JobOrder {}>", self.name)
    }
}

impl JobOrder {
    fn spec(&self, py: Python<'_>, setup: &RunSetup) -> PyResult<PolicySpec> {
        let mut values = BTreeMap::new();
        for job in setup.jobs().map_err(error)? {
            let request = job.map_err(error)?.request;
            let number = request.number;
            let value: f64 =
                self.key.bind(py).call1((Job::new(&request, None),))?.extract().map_err(|wrong| {
                    error(format!("{}: job {number}: the value must be a number: {wrong}", self.name))
                })?;
            if value.is_nan() {
                return Err(error(format!("{}: job {number}: the value is not a number", self.name)));
            }
            if values.insert(number, value).is_some() {
                return Err(error(format!(
                    "{}: several jobs have the number {number}; give each its own",
                    self.name
                )));
            }
        }
        let order = Order::by_values(values);
        let kind = self.backfill;
        Ok(PolicySpec::from_fn(self.name.clone(), Needs::NONE, move |machine, _| {
            let order = order.clone();
            match kind {
                Backfill::None => Box::new(Fcfs::new(order)),
                Backfill::Easy => {
                    backfill("easy", machine, BackfillRules::recomputed(order, ReservationDepth::First(1)))
                }
                Backfill::Conservative => backfill("conservative", machine, BackfillRules::kept(order)),
            }
        }))
    }
}

/// The first error of a policy in Python, which ends the run.
pub(crate) type Raised = Arc<Mutex<Option<PyErr>>>;

/// A policy whose method `schedule(now, waiting, running, free)` returns the numbers of the jobs to start.
struct Scheduled {
    object: Py<PyAny>,
    name: String,
    raised: Raised,
}

impl Scheduled {
    fn numbers(&self, now: Time, ledger: &Ledger) -> PyResult<Vec<i64>> {
        Python::attach(|py| {
            let waiting: Vec<Job> = ledger.waiting().map(|job| Job::new(ledger.request(job), None)).collect();
            let running: Vec<Job> = ledger
                .running()
                .map(|job| match ledger.entry(job).state {
                    State::Running {
                        expected: Expected::At(end) | Expected::Overdue { since: end }, ..
                    } => Job::new(ledger.request(job), Some(end)),
                    _ => Job::new(ledger.request(job), None),
                })
                .collect();
            let free = ledger.free().cpus_count().get();
            let schedule = self.object.bind(py).getattr("schedule")?;
            schedule.call1((secs(now), waiting, running, free))?.extract()
        })
    }

    fn start(&self, number: i64, context: &mut Context<'_>) -> Result<Result<(), PyErr>, Violation> {
        let found =
            context.ledger().waiting().find(|job: &JobId| context.ledger().request(*job).number == number);
        let Some(job) = found else {
            return Ok(Err(error(format!("{}: job {number} does not wait", self.name))));
        };
        let Some(placement) = context.ledger().fit_request(job) else {
            let (wanted, free) =
                (context.ledger().request(job).procs(), context.ledger().free().cpus_count());
            let message =
                format!("{}: job {number} needs {wanted} processors, and {free} are free", self.name);
            return Ok(Err(error(message)));
        };
        context.start(job, placement, StartReason::Reserved).map(Ok)
    }

    fn raise(&self, cause: PyErr) {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(cause);
    }
}

impl Policy for Scheduled {
    fn name(&self) -> &str {
        &self.name
    }

    fn rebuild(&mut self, _now: Time, _ledger: &Ledger) {}

    fn event(&mut self, _now: Time, _event: Event, _ledger: &Ledger) {}

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        if self.raised.lock().unwrap_or_else(PoisonError::into_inner).is_some()
            || context.ledger().waiting_count() == 0
        {
            return Ok(());
        }
        let numbers = match self.numbers(context.now(), context.ledger()) {
            Ok(numbers) => numbers,
            Err(cause) => {
                self.raise(cause);
                return Ok(());
            }
        };
        for number in numbers {
            if let Err(cause) = self.start(number, context)? {
                self.raise(cause);
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Returns the policy that a value of Python gives: its written form, a [`JobOrder`], or an object with a method `schedule`.
/// Its errors are left in `raised`.
pub(crate) fn spec(given: &Bound<'_, PyAny>, setup: &RunSetup, raised: &Raised) -> PyResult<PolicySpec> {
    if let Ok(text) = given.extract::<String>() {
        return text.parse().map_err(error);
    }
    if let Ok(order) = given.cast::<JobOrder>() {
        return order.get().spec(given.py(), setup);
    }
    if !given.hasattr("schedule")? {
        return Err(PyTypeError::new_err(
            "policy: give its written form, a JobOrder, or an object with a method schedule(now, waiting, running, free)",
        ));
    }
    let name = policy_name(given)?;
    let (object, raised) = (given.clone().unbind(), Arc::clone(raised));
    let shared = Arc::new(object);
    Ok(PolicySpec::from_fn(name.clone(), Needs::NONE, move |_, _| {
        let object = Python::attach(|py| shared.clone_ref(py));
        Box::new(Scheduled { object, name: name.clone(), raised: Arc::clone(&raised) })
    }))
}

/// Returns whether a policy is a program, which may decide otherwise when it is asked again.
pub(crate) fn is_program(given: &Bound<'_, PyAny>) -> bool {
    given.extract::<String>().is_err()
}

/// Returns the name of a policy.
pub(crate) fn policy_name(given: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = given.extract::<String>() {
        let policy: PolicySpec = text.parse().map_err(error)?;
        return Ok(policy.to_string());
    }
    match given.cast::<JobOrder>() {
        Ok(order) => Ok(order.get().name.clone()),
        Err(_) => Ok(given.get_type().name()?.to_string()),
    }
}
