//! Policies that are written in Python.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use miserly_core::{
    Context, Event, Expected, JobId, Ledger, Machine, Policy, Request, StartReason, State, Time, Violation,
    named_enum,
};
use miserly_formula::{Formula, FormulaError};
use miserly_machine_file::value_of;
use miserly_policies::backfill::{BackfillRules, Fcfs, ReservationDepth, backfill};
use miserly_policies::{Needs, Order, PolicySpec, Priority};
use miserly_run::RunSetup;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::error::error;
use crate::symbols::{NAMES, formula_of};

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

/// What is added to the numbers of jobs where a run shows whether a policy depends on them. Their order stays.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shift(i64);

impl Shift {
    /// The numbers are those of the log.
    pub(crate) const NONE: Shift = Shift(0);

    /// Others.
    pub(crate) const OTHERS: Shift = Shift(1_000_000_007);
}

/// The least estimate, in seconds: that of formulas, where it is a divisor.
const LEAST: f64 = 1.0;

impl Job {
    fn new(request: &Request, expected_end: Option<Time>, shift: Shift) -> Job {
        Job {
            number: request.number.wrapping_add(shift.0),
            submit: secs(request.submit),
            procs: request.procs().get(),
            estimate: request.estimate.as_secs_f64().max(LEAST),
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

/// Returns a time in seconds of the log.
pub(crate) fn secs(time: Time) -> f64 {
    (time - Time::ZERO).as_secs_f64()
}

/// An order of the queue by a function of a job, or by a formula. The smallest value comes first.
///
/// The function is called once for each job, before the run. With `when="pass"` it is called at each pass for each waiting job,
/// with the job and the present time. A lambda that is an expression over `submit`, `procs`, `estimate` and `now - job.submit` with
/// `+ - * / abs` becomes a formula, which the run evaluates itself. `backfill` is "easy", "conservative" or "none".
#[pyclass(frozen, module = "miserly")]
pub(crate) struct JobOrder {
    #[pyo3(get)]
    key: Py<PyAny>,
    backfill: Backfill,
    when: When,
    #[pyo3(get)]
    name: String,
    #[pyo3(get)]
    uses_numbers: bool,
    /// The formula that is evaluated in place of the function, if there is one.
    #[pyo3(get)]
    formula: Option<String>,
}

named_enum! {
    /// Which jobs may start before the first one.
    enum Backfill {
        /// None.
        None "none",
        /// Those that do not delay the first one.
        Easy "easy",
        /// Those that delay no other one.
        Conservative "conservative",
    }
}

named_enum! {
    /// When the function is called.
    enum When {
        /// Once for each job.
        Once "once",
        /// At each pass, for each waiting job.
        Pass "pass",
    }
}

impl Backfill {
    /// Returns the policy of an order.
    fn policy(self, machine: &Machine, order: Order) -> Box<dyn Policy> {
        match self {
            Backfill::None => Box::new(Fcfs::new(order)),
            Backfill::Easy => {
                backfill("easy", machine, BackfillRules::recomputed(order, ReservationDepth::First(1)))
            }
            Backfill::Conservative => backfill("conservative", machine, BackfillRules::kept(order)),
        }
    }
}

/// The jobs on which a formula is compared with its function.
const COMPARED: usize = 256;

#[pymethods]
impl JobOrder {
    #[new]
    #[pyo3(signature = (key, *, backfill = "easy", when = "once", name = None, uses_numbers = false))]
    fn new(
        key: Bound<'_, PyAny>,
        backfill: &str,
        when: &str,
        name: Option<String>,
        uses_numbers: bool,
    ) -> PyResult<JobOrder> {
        let backfill = value_of(&Backfill::ALL, "backfill", backfill).map_err(error)?;
        let when = value_of(&When::ALL, "when", when).map_err(error)?;
        let (formula, default) = if let Ok(text) = key.extract::<String>() {
            priority(&text).map_err(|wrong| error(format!("key: {wrong}")))?;
            (Some(text.clone()), text)
        } else if key.is_callable() {
            let default = key.getattr("__name__").and_then(|name| name.extract());
            (formula_of(&key, when == When::Pass), default.unwrap_or_else(|_| "order".into()))
        } else {
            return Err(PyTypeError::new_err("key: give a function of a job, or a formula"));
        };
        let name = name.unwrap_or(default);
        Ok(JobOrder { key: key.unbind(), backfill, when, name, uses_numbers, formula })
    }

    /// "none", "easy" or "conservative".
    #[getter]
    fn backfill(&self) -> &'static str {
        self.backfill.name()
    }

    /// "once" or "pass".
    #[getter]
    fn when(&self) -> &'static str {
        self.when.name()
    }

    fn __repr__(&self) -> String {
        format!("<JobOrder {}>", self.name)
    }

    /// Returns the arguments that make the order again, for pickle.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((Py<PyAny>,), Bound<'py, PyDict>)> {
        let options = PyDict::new(py);
        options.set_item("backfill", self.backfill())?;
        options.set_item("when", self.when())?;
        options.set_item("name", &self.name)?;
        options.set_item("uses_numbers", self.uses_numbers)?;
        Ok(((self.key.clone_ref(py),), options))
    }
}

/// Returns the order with the smallest value of a formula first.
fn priority(formula: &str) -> Result<Priority, FormulaError> {
    Priority::largest(&format!("-({formula})"))
}

impl JobOrder {
    fn spec(&self, py: Python<'_>, setup: &RunSetup, raised: &Raised, shift: Shift) -> PyResult<PolicySpec> {
        let kind = self.backfill;
        let make = |order: Order| {
            PolicySpec::from_fn(self.name.clone(), Needs::NONE, move |machine, _| {
                kind.policy(machine, order.clone())
            })
        };
        if let Some(formula) = self.exact_formula(py, setup)? {
            return Ok(make(Order::by_formula(priority(formula).map_err(error)?)));
        }
        if self.when == When::Once {
            return Ok(make(Order::by_values(self.values(py, setup, shift)?)));
        }
        let (key, name, raised) = (Arc::new(self.key.clone_ref(py)), self.name.clone(), Arc::clone(raised));
        Ok(PolicySpec::from_fn(self.name.clone(), Needs::NONE, move |machine, _| {
            let (key, name) = (Arc::clone(&key), name.clone());
            let decisions = PassOrder { key, name, shift, backfill: kind, machine: machine.clone() };
            Box::new(PythonPolicy { decisions, raised: Arc::clone(&raised) })
        }))
    }

    /// Returns the formula, if it has the values of the function for the first jobs of the log.
    fn exact_formula(&self, py: Python<'_>, setup: &RunSetup) -> PyResult<Option<&str>> {
        let Some(text) = self.formula.as_deref() else { return Ok(None) };
        if self.key.bind(py).is_instance_of::<PyString>() {
            return Ok(Some(text));
        }
        let Ok(formula) = Formula::parse(text, &NAMES) else { return Ok(None) };
        for (place, job) in setup.jobs().map_err(error)?.take(COMPARED).enumerate() {
            let job = Job::new(&job.map_err(error)?.request, None, Shift::NONE);
            let wait = if self.when == When::Pass { place as f64 } else { 0.0 };
            let value = formula.eval(&[wait, job.estimate, job.procs as f64, job.submit]);
            if self.value(py, job.clone(), job.submit + wait)?.to_bits() != value.to_bits() {
                return Ok(None);
            }
        }
        Ok(Some(text))
    }

    /// Returns the value of a job.
    fn value(&self, py: Python<'_>, job: Job, now: f64) -> PyResult<f64> {
        value_of_job(self.key.bind(py), &self.name, job, (self.when == When::Pass).then_some(now))
    }

    /// Returns the value of each job, by its number in the log.
    fn values(&self, py: Python<'_>, setup: &RunSetup, shift: Shift) -> PyResult<BTreeMap<i64, f64>> {
        let mut values = BTreeMap::new();
        for job in setup.jobs().map_err(error)? {
            let request = job.map_err(error)?.request;
            let number = request.number;
            let value = self.value(py, Job::new(&request, None, shift), 0.0)?;
            if values.insert(number, value).is_some() {
                return Err(error(format!(
                    "{}: several jobs have the number {number}; give each its own",
                    self.name
                )));
            }
        }
        Ok(values)
    }
}

/// Returns the value that a function gives for a job.
fn value_of_job(key: &Bound<'_, PyAny>, name: &str, job: Job, now: Option<f64>) -> PyResult<f64> {
    let number = job.number;
    let value = match now {
        Some(now) => key.call1((job, now))?,
        None => key.call1((job,))?,
    };
    let value: f64 = value
        .extract()
        .map_err(|wrong| error(format!("{name}: job {number}: the value must be a number: {wrong}")))?;
    if value.is_nan() {
        return Err(error(format!("{name}: job {number}: the value is not a number")));
    }
    Ok(value)
}

/// An order whose function is called at each pass. A policy has no state of its own, so each pass has a new one.
struct PassOrder {
    key: Arc<Py<PyAny>>,
    name: String,
    shift: Shift,
    backfill: Backfill,
    machine: Machine,
}

impl PassOrder {
    fn order(&self, now: Time, ledger: &Ledger) -> PyResult<Order> {
        Python::attach(|py| {
            let value = |job: JobId| {
                let request = ledger.request(job);
                let seen = Job::new(request, None, self.shift);
                Ok((request.number, value_of_job(self.key.bind(py), &self.name, seen, Some(secs(now)))?))
            };
            let values: BTreeMap<i64, f64> = ledger.waiting().map(value).collect::<PyResult<_>>()?;
            if values.len() < ledger.waiting_count() {
                return Err(error(format!(
                    "{}: several jobs have the same number; give each its own",
                    self.name
                )));
            }
            Ok(Order::by_values(values))
        })
    }
}

impl Decisions for PassOrder {
    fn name(&self) -> &str {
        &self.name
    }

    fn decide(&self, context: &mut Context<'_>) -> Result<PyResult<()>, Violation> {
        let now = context.now();
        let order = match self.order(now, context.ledger()) {
            Ok(order) => order,
            Err(cause) => return Ok(Err(cause)),
        };
        let mut policy = self.backfill.policy(&self.machine, order);
        policy.rebuild(now, context.ledger());
        // It has not seen what happened, so it looks for earlier starts of all jobs.
        policy.event(now, Event::Rebuilt, context.ledger());
        policy.pass(context).map(Ok)
    }
}

/// The first error of a policy in Python, which ends the run.
pub(crate) type Raised = Arc<Mutex<Option<PyErr>>>;

/// The decisions of a policy whose code is in Python.
trait Decisions: Send {
    fn name(&self) -> &str;

    /// Decides at an instant at which jobs wait. The inner error is one of Python.
    fn decide(&self, context: &mut Context<'_>) -> Result<PyResult<()>, Violation>;
}

/// A policy whose code is in Python. After its first error it decides nothing.
struct PythonPolicy<D> {
    decisions: D,
    raised: Raised,
}

impl<D> PythonPolicy<D> {
    fn raised(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Decisions> Policy for PythonPolicy<D> {
    fn name(&self) -> &str {
        self.decisions.name()
    }

    fn rebuild(&mut self, _now: Time, _ledger: &Ledger) {}

    fn event(&mut self, _now: Time, _event: Event, _ledger: &Ledger) {}

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        if self.raised().is_some() || context.ledger().waiting_count() == 0 {
            return Ok(());
        }
        if let Err(cause) = self.decisions.decide(context)? {
            self.raised().get_or_insert(cause);
        }
        Ok(())
    }
}

/// A policy whose method `schedule(now, waiting, running, free)` returns the numbers of the jobs to start.
struct Scheduled {
    object: Py<PyAny>,
    name: String,
    shift: Shift,
}

impl Scheduled {
    fn numbers(&self, now: Time, ledger: &Ledger) -> PyResult<Vec<i64>> {
        Python::attach(|py| {
            let waiting: Vec<Job> =
                ledger.waiting().map(|job| Job::new(ledger.request(job), None, self.shift)).collect();
            let running: Vec<Job> = ledger
                .running()
                .map(|job| match ledger.entry(job).state {
                    State::Running {
                        expected: Expected::At(end) | Expected::Overdue { since: end }, ..
                    } => Job::new(ledger.request(job), Some(end), self.shift),
                    _ => Job::new(ledger.request(job), None, self.shift),
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
}

impl Decisions for Scheduled {
    fn name(&self) -> &str {
        &self.name
    }

    fn decide(&self, context: &mut Context<'_>) -> Result<PyResult<()>, Violation> {
        let numbers = match self.numbers(context.now(), context.ledger()) {
            Ok(numbers) => numbers,
            Err(cause) => return Ok(Err(cause)),
        };
        for number in numbers {
            let number = number.wrapping_sub(self.shift.0);
            if let Err(cause) = self.start(number, context)? {
                return Ok(Err(cause));
            }
        }
        Ok(Ok(()))
    }
}

/// Returns the policy that a value of Python gives: its written form, a [`JobOrder`], or an object with a method `schedule`.
/// Its errors are left in `raised`.
pub(crate) fn spec(
    given: &Bound<'_, PyAny>,
    setup: &RunSetup,
    raised: &Raised,
    shift: Shift,
) -> PyResult<PolicySpec> {
    if let Ok(text) = given.extract::<String>() {
        return text.parse().map_err(error);
    }
    if let Ok(order) = given.cast::<JobOrder>() {
        return order.get().spec(given.py(), setup, raised, shift);
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
        let decisions = Scheduled { object, name: name.clone(), shift };
        Box::new(PythonPolicy { decisions, raised: Arc::clone(&raised) })
    }))
}

/// Returns whether a policy is a program, which may decide otherwise when it is asked again.
pub(crate) fn is_program(given: &Bound<'_, PyAny>) -> bool {
    given.extract::<String>().is_err()
}

/// Returns whether a policy says that it uses the numbers of jobs.
pub(crate) fn uses_numbers(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    match given.getattr_opt("uses_numbers")? {
        Some(uses) => uses.is_truthy(),
        None => Ok(false),
    }
}

/// Returns a policy as it is now: a copy, if it can be copied.
pub(crate) fn as_it_is<'py>(given: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    let copy = given.py().import("copy").and_then(|copy| copy.call_method1("deepcopy", (given,)));
    if given.cast::<JobOrder>().is_ok() { given.clone() } else { copy.unwrap_or_else(|_| given.clone()) }
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
